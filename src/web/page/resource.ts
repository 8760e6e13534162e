/** A resource of the server, as GET /resources lists it. Nothing here needs a browser. */

export interface Resource {
  readonly name: string;
  /** About how many rows. Missing where the store keeps no such number. */
  readonly rows?: number;
  /** Why the resource cannot be read now. */
  readonly unavailable?: string;
  readonly queries: readonly Form[];
  /** The kinds of values that fields have. */
  readonly kinds: readonly { readonly field: string; readonly kinds: readonly string[] }[];
  readonly missing: readonly { readonly index: string; readonly line: string }[];
  readonly refused: readonly { readonly index: string; readonly reason: string }[];
  readonly formats: readonly string[];
  /** The only parameters that ask for fields. Missing: every field can be asked by its path. */
  readonly aliases?: readonly Alias[];
  /** No path is a parameter by itself. */
  readonly onlyAliases?: boolean;
  readonly links: Links;
}

/** The URLs that the key may use. */
interface Links {
  readonly page?: string;
  readonly stream?: string;
  readonly values?: string;
  readonly changes?: string;
  readonly exports?: string;
  readonly edition?: string;
}

/** A form of query that an index answers: a value for each filter, in the order of the index, and an order. */
interface Form {
  readonly filters: readonly string[];
  /** null: the filters name one row at most. */
  readonly sort: string | null;
}

/** A parameter that stands for a path, with or without an operator, such as `createdAt.gte`. */
interface Alias {
  readonly name: string;
  readonly for: string;
  /** Its type in JSON bodies. */
  readonly type: string;
}

/** Users are records without streams, counts and filters. */
export function isCounted({ formats }: Resource): boolean {
  return formats.length > 0;
}

/** Segments behind a resource that are no keys. */
const TAKEN = new Set(['stream', 'partitions', 'values', 'changes', 'edition']);

export function rowUrl({ links }: Resource, key: string): string {
  const code = key.charCodeAt(0).toString(16).toUpperCase();
  const segment = TAKEN.has(key) ? `%${code}${key.slice(1)}` : encodeURIComponent(key);
  return `${links.page ?? ''}/${segment}`;
}
