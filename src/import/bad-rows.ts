import { counted } from '../terminal/text.ts';

/** The bad rows of a kind that are listed one by one: a wrong --price makes millions of them. */
const MOST_LISTED = 10;
/** The kinds that are counted each by itself. */
const MOST_KINDS = 100;

/** The bad rows of an import by their kinds: the same fault of the same column, whatever the value. */
export class BadRows {
  readonly #kinds = new Map<string, { readonly at: string; readonly of: string; rows: number }>();

  /** Counts a bad row at a place such as `line 2`. Returns whether the report lists it. */
  add(at: string, reason: string, of = ''): boolean {
    const shape = `${of} ${reason.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/\d+/g, '0')}`;
    const key = this.#kinds.has(shape) || this.#kinds.size < MOST_KINDS ? shape : '';
    const kind = this.#kinds.get(key) ?? { at, of, rows: 0 };
    this.#kinds.set(key, kind);
    return ++kind.rows <= MOST_LISTED;
  }

  /** A line for each kind that has further rows. */
  get rest(): readonly string[] {
    return [...this.#kinds.values()]
      .filter(({ rows }) => rows > MOST_LISTED)
      .map(({ at, of, rows }) => {
        const ofField = of === '' ? '' : `, of ${of}`;
        return `${counted(rows - MOST_LISTED)} more like this${ofField} (the first: ${at})`;
      });
  }
}
