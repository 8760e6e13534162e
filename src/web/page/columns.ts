/** The columns of a table: which there are, what they hold, and how wide they are. */
import { aligned, fractionOf, kindOf, shown, type Kind } from './cells.ts';
import type { Resource } from './resource.ts';
import { keyName, own, type Json, type Row } from './json.ts';

const MOST_COLUMNS = 60;
/** Fraction digits up to which the points of a column are aligned. */
const MOST_FRACTION = 6;
/** The operator behind a path. */
const BOUND = /\.[gl]te?$/;
/** Pixels of a letter, of what surrounds a text, and the limits of a column. */
const LETTER = 7.9;
const AROUND = 26;
const NARROWEST = 64;
const WIDEST = 340;
/** Texts of a column that are measured. */
const MOST_MEASURED = 10;

export interface Column {
  readonly name: string;
  readonly kind: Kind;
  /** Whether it has the keys of rows. */
  readonly isKey: boolean;
  /** Digits behind the point that numbers are aligned by. */
  readonly fraction: number;
  /** Pixels. */
  readonly width: number;
}

/** The columns of rows. `before`: those that are there already, which stay where they are. */
export function columnsOf(
  resource: Resource,
  rows: readonly Row[],
  before: readonly Column[],
): readonly Column[] {
  // A row that has a field `id` of its own shows its key as `_id`.
  const hasOwnId = rows.some((row) => '_id' in row) || before.some(({ name }) => name === '_id');
  const names = new Set(hasOwnId ? ['_id', 'id'] : ['id']);
  for (const alias of resource.aliases ?? []) names.add(alias.for.replace(BOUND, ''));
  for (const { name } of before) names.add(name);
  for (const row of rows) for (const name of Object.keys(row)) if (names.size < MOST_COLUMNS) names.add(name);
  const known = new Map(before.map((column) => [column.name, column]));
  return [...names].map((name) => {
    const isKey = name === (hasOwnId ? '_id' : 'id');
    const column = known.get(name);
    if (column?.isKey !== isKey) return columnOf(name, isKey, rows);
    const width = isKey ? keyWidth(rows) : 0;
    return width > column.width ? { ...column, width } : column;
  });
}

/** The pixels of the longest key. No key is cut. */
function keyWidth(rows: readonly Row[]): number {
  const widths = widthsOf(rows.map((row) => shown(row[keyName(row)], true))) ?? [WIDEST];
  return Math.ceil(Math.max(NARROWEST, ...widths));
}

/** The pixels of cells with these texts, as their font has them. Null: they cannot be measured. */
function widthsOf(texts: readonly string[]): readonly number[] | null {
  const ruler = document.createElement('canvas').getContext('2d');
  if (!ruler) return null;
  ruler.font = getComputedStyle(document.body).font;
  return texts.map((text) => ruler.measureText(text).width + AROUND);
}

function columnOf(name: string, isKey: boolean, rows: readonly Row[]): Column {
  const values = rows.map((row) => cellOf(row, { name, isKey }));
  const kinds = values.map(kindOf).filter((kind) => kind !== null);
  const kind =
    kinds.find((one) => kinds.filter((other) => other === one).length * 2 > kinds.length) ?? 'text';
  const texts = values.map((value) => shown(value, isKey));
  const fraction = kind === 'number' ? Math.min(MOST_FRACTION, Math.max(0, ...texts.map(fractionOf))) : 0;
  const inCells = texts.map((text) => aligned(text, fraction)).sort((a, b) => b.length - a.length);
  const letters = Math.max(name.length + 2, inCells[0]?.length ?? 0);
  // Digits and capitals are wider than letters. The longest texts stand for all, since measuring takes time.
  const measured = widthsOf(inCells.slice(0, MOST_MEASURED)) ?? [];
  const longest = Math.max(letters * LETTER + AROUND, ...measured);
  const fitting = Math.ceil(Math.min(WIDEST, Math.max(NARROWEST, longest)));
  const width = isKey ? keyWidth(rows) : fitting;
  return { name, kind, isKey, fraction, width };
}

/** The value of a row in a column. A row without `_id` has its key as `id`, and no field of this name. */
export function cellOf(row: Row, { name, isKey }: Pick<Column, 'name' | 'isKey'>): Json | undefined {
  if (isKey) return row[keyName(row)];
  return name === 'id' && !('_id' in row) ? undefined : own(row, name);
}

export function cellText(value: Json | undefined, { kind, fraction, isKey }: Column): string {
  const text = shown(value, isKey);
  return kind === 'number' && kindOf(value) === 'number' ? aligned(text, fraction) : text;
}

/** The classes of the cells of a column. */
export function classOf({ kind, isKey }: Column): string {
  return `cell ${kind}${isKey ? ' key' : ''}`;
}
