import { basename } from 'node:path';
import { nameFault } from '../resources/declarations.ts';
import { UsageError } from '../terminal/arguments.ts';
import { countOf, quoted } from '../terminal/text.ts';
import { USERS } from '../users/row.ts';
import type { Reading } from './arguments.ts';
import type { CsvRecord } from './csv.ts';
import { withDecimalPoint } from './numbers.ts';
import { STDIN } from './source.ts';

/** The rows in which a key is looked for: each column keeps its texts until one comes twice. */
const MOST_ROWS = 10_000;
const FRACTION = /^[+-]?\d+[.,]\d+$/;
/** A number whose comma is no mark of thousands. */
const CLEAR_COMMA = /,(?:\d\d?|\d{4,})$/;

/** The rows of a file are no items. The message says why, and `options` are those of an import into a resource. */
export class NoItems extends UsageError {
  readonly options: readonly string[];

  constructor(message: string, options: readonly string[]) {
    super(message);
    this.options = options;
  }
}

interface Seen {
  readonly name: string;
  /** The texts of a column that may be the key. Null: a cell has no value, is a fraction, or has the value of another. */
  texts: Set<string> | null;
  /** Whether all cells may have decimal commas, and one must. */
  mayHaveCommas: boolean;
  hasComma: boolean;
}

/** Looks at rows of a CSV file for its key, and for decimal commas. */
export class Suggestion {
  readonly #columns: readonly Seen[];
  #rows = 0;

  constructor(header: readonly string[]) {
    this.#columns = header.map((name) => ({ name, texts: new Set(), mayHaveCommas: true, hasComma: false }));
  }

  /** Looks at a row. Returns whether further ones are wanted. */
  see(record: CsvRecord): boolean {
    for (const [index, column] of this.#columns.entries()) {
      const isMissing = record.isMissing(index);
      const text = isMissing ? '' : record.text(index);
      if (text === '' || FRACTION.test(text) || column.texts?.has(text)) column.texts = null;
      column.texts?.add(text);
      if (isMissing) continue;
      column.mayHaveCommas &&= withDecimalPoint(text) !== null;
      column.hasComma ||= CLEAR_COMMA.test(text);
    }
    return ++this.#rows < MOST_ROWS;
  }

  /** The error for a file whose rows are no items, with the options of an import into a resource. */
  error({ columns: { id }, hasDecimalComma }: Reading): NoItems {
    const names = this.#columns.map(({ name }) => name);
    const hasKey = id !== null || names.includes('_id') || names.includes('id');
    const key = hasKey ? undefined : this.#columns.find(({ texts }) => texts?.size)?.name;
    const isComma = !hasDecimalComma && this.#columns.some((one) => one.mayHaveCommas && one.hasComma);
    const missing = ['category', 'price'].filter((name) => !names.includes(name)).map((name) => quoted(name));
    const unique =
      key === undefined
        ? ''
        : `; ${quoted(key)} is unique in the ${countOf(this.#rows, 'row')} that were read`;
    return new NoItems(
      `the file has no column ${missing.join(' or ')}, so its rows are not items: --category and --price name such columns. ` +
        `This command makes a resource with the columns of the file${unique}:`,
      [...(key === undefined ? [] : ['--id', key]), ...(isComma ? ['--decimal-comma'] : [])],
    );
  }
}

/** The name of a resource for the rows of a file. */
export function nameOfFile(file: string): string {
  const [name = ''] = file === STDIN ? [] : basename(file).split('.');
  return nameFor(plain(name) || 'rows', [USERS.name]);
}

/** A name, or one like it that a URL and the routes of the server allow, and that is not taken. */
export function nameFor(wanted: string, taken: readonly string[]): string {
  const isFree = (name: string) => nameFault(name) === undefined && !taken.includes(name);
  if (isFree(wanted)) return wanted;
  const base = `${plain(wanted) || 'c'}-rows`;
  for (let n = 1; ; n++) {
    const name = n === 1 ? base : `${base}-${n}`;
    if (isFree(name)) return name;
  }
}

/** A text with other characters than those of names taken out. */
function plain(text: string): string {
  const letters = text.normalize('NFKD').replace(/\p{M}/gu, '');
  return letters
    .replace(/[^A-Za-z0-9._~-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|-+$/g, '')
    .slice(0, 100);
}
