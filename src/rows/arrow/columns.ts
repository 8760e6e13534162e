import { decoded } from '../../base/decoded.ts';

/** In the order of their numbers in arrow-rows.as.ts. `json` has any value, as JSON text. */
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

/** `decimal(38,s)`: numbers with `s` places behind the point, 0 to 38, and at most 38 digits. */
export type ColumnKind = (typeof KINDS)[number] | `decimal(38,${number})`;

export const KINDS_TEXT = `${KINDS.join(', ')}, and decimal(38,s) with 0 to 38 as s`;

const SCALED = /^decimal\(38,(\d|[12]\d|3[0-8])\)$/;

/** How many places the numbers of a kind `decimal(38,s)` have. Undefined for other kinds. */
export function scaleOf(kind: string): number | undefined {
  const [, scale] = SCALED.exec(kind) ?? [];
  return scale === undefined ? undefined : Number(scale);
}

/** The number of a kind in arrow-rows.as.ts, where those of `decimal(38,s)` follow the others. */
export function numberOf(kind: ColumnKind): number {
  const scale = scaleOf(kind);
  return scale === undefined ? KINDS.findIndex((known) => known === kind) : KINDS.length + scale;
}

/** Whether all values of a column have the same size. */
export function isFixedSize(kind: ColumnKind): boolean {
  return ['integer', 'double', 'boolean', 'date'].includes(kind) || scaleOf(kind) !== undefined;
}

/** A column of a table of Arrow. Names are those of the columns of CSV: top-level fields or paths, the key as `id`. */
export interface Column {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** The kinds that columns of paths have, whatever values there are. The key is `_id`. */
export type DeclaredKinds = ReadonlyMap<string, ColumnKind>;

/** The last column: an object of the values that do not fit their column, and of fields without a column. */
export const REST = '_rest';

/** Columns as the parameter `columns` has them: `id:text,price:decimal(38,2)`. Names are percent-encoded where necessary. */
export function columnsText(columns: readonly Column[]): string {
  return columns.map(({ name, kind }) => `${encodeURIComponent(name)}:${kind}`).join(',');
}

/** The columns of such a text. Undefined when it is none: an unknown kind, or a name that is empty, wrong or comes twice. */
export function columnsOfText(text: string): readonly Column[] | undefined {
  const columns: Column[] = [];
  for (const part of text.split(/,(?!\d+\)(?:,|$))/)) {
    const [encoded = '', word = '', more] = part.split(':');
    const kind = kindOf(word);
    const name = decoded(encoded);
    const isName = name !== undefined && name !== '' && name !== REST && !name.includes('\0');
    if (kind === undefined || more !== undefined || !isName) return;
    columns.push({ name, kind });
  }
  return new Set(columns.map(({ name }) => name)).size === columns.length ? columns : undefined;
}

function kindOf(word: string): ColumnKind | undefined {
  const scale = scaleOf(word);
  return scale === undefined ? KINDS.find((known) => known === word) : `decimal(38,${scale})`;
}
