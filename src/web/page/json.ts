/** JSON as the server writes it, with all digits of its numbers. */

/** A number that a JavaScript number would round, an Int64 or a Decimal128, as `JSON.rawJSON` makes it. */
interface Digits {
  readonly rawJSON: string;
}

/** Browsers that give the source of a number have these, too. */
declare global {
  interface JSON {
    rawJSON?(text: string): unknown;
    isRawJSON?(value: unknown): value is Digits;
  }
}

export type Json = string | number | boolean | null | Digits | readonly Json[] | Members;
interface Members {
  readonly [name: string]: Json;
}
export type Row = Members;

/** Parses JSON. Where the browser gives the source of a number, none loses a digit. */
export function parseJson(text: string): unknown {
  return JSON.parse(text, exact);
}

function exact(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  return String(value) === context.source ? value : (JSON.rawJSON?.(context.source) ?? value);
}

export function isNumber(value: Json | undefined): value is number | Digits {
  return typeof value === 'number' || JSON.isRawJSON?.(value) === true;
}

export function isMembers(value: Json | undefined): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isNumber(value);
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** The name of the key: `_id` in a row that has a field `id` of its own, else `id`. */
export function keyName(row: Row): '_id' | 'id' {
  return '_id' in row ? '_id' : 'id';
}

/** The key of a row as text, which is unique among the rows. */
export function keyOf(row: Row): string {
  return textOf(row[keyName(row)] ?? null);
}

/** A value as plain text: a text as it is, everything else as JSON with all its digits. */
export function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The member of this name. A name of Object.prototype is a name as any other. */
export function own(members: Members, name: string): Json | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

/** The value at a path. Undefined where there is none. A top-level field may have dots in its name. */
export function valueAt(row: Row, path: string): Json | undefined {
  if (Object.hasOwn(row, path)) return row[path];
  let value: Json | undefined = row;
  for (const name of path.split('.')) {
    if (!isMembers(value)) return undefined;
    value = own(value, name);
  }
  return value;
}
