/**
 * The kinds of columns, as `columns` names them, in the order of their numbers in arrow-rows.as.ts. `json` has any
 * value, as JSON text.
 */
export const KINDS = [
  'text',
  'objectId',
  'uuid',
  'decimal',
  'integer',
  'double',
  'boolean',
  'date',
  'binary',
  'json',
] as const;

export type ColumnKind = (typeof KINDS)[number];

/** A column of a table of Arrow. Names are those of the columns of CSV: top-level fields or paths, the key as `id`. */
export interface Column {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** The kinds that columns of paths have, whatever values there are. The key is `_id`. */
export type DeclaredKinds = ReadonlyMap<string, ColumnKind>;

/** The last column: an object of the values that do not fit their column, and of fields without a column. */
export const REST = '_rest';

/** Columns as the parameter `columns` has them: `id:text,price:integer`. Names are percent-encoded where necessary. */
export function columnsText(columns: readonly Column[]): string {
  return columns.map(({ name, kind }) => `${encodeURIComponent(name)}:${kind}`).join(',');
}

/** The columns of such a text. Undefined when it is none: an unknown kind, or a name that is empty, wrong or comes twice. */
export function columnsOfText(text: string): readonly Column[] | undefined {
  const columns: Column[] = [];
  for (const part of text.split(',')) {
    const [encoded = '', word, more] = part.split(':');
    const kind = KINDS.find((known) => known === word);
    const name = decoded(encoded);
    if (kind === undefined || more !== undefined || name === undefined || name === '' || name === REST)
      return;
    columns.push({ name, kind });
  }
  return new Set(columns.map(({ name }) => name)).size === columns.length ? columns : undefined;
}

function decoded(text: string): string | undefined {
  try {
    const name = decodeURIComponent(text);
    return name.includes('\0') ? undefined : name;
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
