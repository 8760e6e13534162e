import { DECIMAL_KEY_BYTES, DECIMAL_MARK } from './keys.ts';
import type { Key } from './keys.ts';

/** The databases of the file, by the names under which it knows them. */
export const NAMES = {
  /** id -> BSON document */
  items: 'items',
  /** Indexes: an entry's key ends in the key of the id and has no value. */
  byPrice: 'items by price, id',
  byCategory: 'items by category, id',
  byCategoryPrice: 'items by category, price, id',
  /** id -> BSON document */
  users: 'users',
  /** id -> BSON document */
  exports: 'exports',
  /** The file's format and the number of items. */
  meta: 'meta',
} as const;

export type IndexName = 'byPrice' | 'byCategory' | 'byCategoryPrice';

/** What is used of an lmdb database. */
export interface Database {
  getRange(options: RangeOptions): Iterable<unknown>;
  /** Undefined when there is none. Of items, users and exports: true, and the sink has the row. */
  get(key: Key | KeyScratch): unknown;
  /** A copy of the value; undefined when there is none. */
  getBinary(key: Key): Uint8Array | undefined;
  /** In a write transaction. False when `noOverwrite` kept what is there. */
  putSync(key: Key, value: Uint8Array, options?: { readonly noOverwrite: boolean }): boolean;
  removeSync(key: Key): boolean;
}

export interface RangeOptions {
  readonly start: Key;
  readonly end: Key;
  readonly reverse: boolean;
  /** Not the entry of `start` itself. */
  readonly exclusiveStart: boolean;
  /** How many entries to pass over: they are counted in the index, no row is touched. */
  readonly offset: number;
  readonly values: boolean;
}

/** How a database is to be opened: how its keys are written and read, and what becomes of its values. */
export interface DatabaseShape {
  readonly keyEncoder: {
    writeKey(key: Key | KeyScratch, target: Uint8Array, start: number): number;
    readKey(source: Uint8Array, start: number, end: number): unknown;
  };
  readonly encoder?: { encode(row: Uint8Array): Uint8Array; decode(bytes: Uint8Array): true };
}

/** Takes rows as they are met; `document` is a view of memory that the next row will be in. */
export interface RowSink {
  row(document: Uint8Array): void;
}

/** A key used again and again, on its way from an index entry to the item: an array for each would cost more than the lookup. */
export class KeyScratch {
  readonly bytes = new Uint8Array(2048);
  length = 0;

  copied(): Key {
    return this.bytes.slice(0, this.length);
  }

  /** By a loop: keys are short, and `set` needs a view first. */
  copy(from: Uint8Array, start: number, end: number): void {
    this.length = end - start;
    for (let at = start, to = 0; at < end; at++, to++) this.bytes[to] = from[at] ?? 0;
  }
}

/** Rows up to this size share views. */
const LARGEST_SHARED = 4096;

/**
 * Views of lmdb's buffer for all values, which claims to be as long as the value: it is far longer, so that copying it
 * as a whole throws. Rows have few different lengths, so views are kept by length: to make one for each row would cost
 * as much as copying the row.
 */
class ValueViews {
  #buffer: Uint8Array | null = null;
  #views: (Uint8Array | undefined)[] = [];

  of(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    if (length > LARGEST_SHARED) return bytes.subarray(0, length);
    if (bytes !== this.#buffer) {
      this.#buffer = bytes;
      this.#views = new Array<Uint8Array | undefined>(LARGEST_SHARED + 1);
    }
    return (this.#views[length] ??= bytes.subarray(0, length));
  }
}

/**
 * The databases, and the three registers of a look at them. A look is synchronous, so they are never used by two: who
 * looks sets `sink` and `prefix` first.
 */
export class Tables {
  readonly items: Database;
  readonly byPrice: Database;
  readonly byCategory: Database;
  readonly byCategoryPrice: Database;
  readonly users: Database;
  readonly exports: Database;
  readonly meta: Database;
  /** Where the rows go that are met in `items`, `users` and `exports`. */
  sink: RowSink | null = null;
  /** How many bytes of a key go before the part that `found` wants; null when nobody wants keys. */
  prefix: number | null = null;
  readonly found = new KeyScratch();

  constructor(open: (name: string, shape: DatabaseShape) => Database) {
    const keyEncoder = {
      writeKey,
      readKey: (source: Uint8Array, start: number, end: number): void => {
        if (this.prefix === null) return;
        const at = start + this.prefix;
        // Behind the prefix stands the id, or the rest of a price's longer key before it.
        this.found.copy(
          source,
          this.prefix > 0 && source[at] === DECIMAL_MARK ? at + DECIMAL_KEY_BYTES : at,
          end,
        );
      },
    };
    const views = new ValueViews();
    const encoder = {
      encode: (row: Uint8Array): Uint8Array => row,
      decode: (bytes: Uint8Array): true => {
        this.sink?.row(views.of(bytes));
        return true;
      },
    };
    this.meta = open(NAMES.meta, { keyEncoder });
    this.items = open(NAMES.items, { keyEncoder, encoder });
    this.users = open(NAMES.users, { keyEncoder, encoder });
    this.exports = open(NAMES.exports, { keyEncoder, encoder });
    this.byPrice = open(NAMES.byPrice, { keyEncoder });
    this.byCategory = open(NAMES.byCategory, { keyEncoder });
    this.byCategoryPrice = open(NAMES.byCategoryPrice, { keyEncoder });
  }
}

function writeKey(key: Key | KeyScratch, target: Uint8Array, start: number): number {
  if (key instanceof KeyScratch) {
    for (let at = 0; at < key.length; at++) target[start + at] = key.bytes[at] ?? 0;
  } else {
    target.set(key, start);
  }
  return start + key.length;
}
