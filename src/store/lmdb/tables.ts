import { DECIMAL_KEY_BYTES, DECIMAL_MARK } from '../keys.ts';
import type { Key } from '../keys.ts';

/** The databases of the file, by their names in it. */
export const NAMES = {
  /** id -> BSON document */
  items: 'items',
  /** Indexes: an entry's key ends with the key of the id, and its value is empty. */
  byPrice: 'items by price, id',
  byCategory: 'items by category, id',
  byCategoryPrice: 'items by category, price, id',
  /** id -> BSON document */
  users: 'users',
  /** id -> BSON document */
  exports: 'exports',
  /** resource, id -> BSON document: see rows/keyed.ts */
  rows: 'rows',
  /** Indexes of resources: resource, index, values, id */
  entries: 'entries of rows',
  /** set, sequence number -> changed ids: see feed/record.ts */
  changes: 'changes',
  /** The file's format and the number of items. */
  meta: 'meta',
} as const;

export type IndexName = 'byPrice' | 'byCategory' | 'byCategoryPrice';

/** The methods of an lmdb database that are used here. */
export interface Database {
  getRange(options: RangeOptions): Iterable<unknown>;
  /** Undefined when there is no such key. For items, users and exports: true, and the sink receives the row. */
  get(key: Key | KeyScratch): unknown;
  /** A copy of the value. Undefined when there is no such key. */
  getBinary(key: Key): Uint8Array | undefined;
  /** Must be called in a write transaction. False when `noOverwrite` kept an existing value. */
  putSync(key: Key | KeyScratch, value: Uint8Array, options?: PutOptions): boolean;
  removeSync(key: Key): boolean;
  /** Removes all entries. Must be called in a write transaction. */
  clearSync(): void;
}

/** Put only when there is no such key. */
export const IF_NEW: PutOptions = { noOverwrite: true };
/** The value of an index's entry, whose key says everything. */
export const NO_VALUE = new Uint8Array(0);

export interface PutOptions {
  readonly noOverwrite?: boolean;
  /** The key is above all others of the table. Its place is then not looked up, and pages are left full. */
  readonly append?: boolean;
}

export interface RangeOptions {
  readonly start: Key;
  readonly end: Key;
  readonly reverse: boolean;
  /** Excludes the entry of `start` itself. */
  readonly exclusiveStart: boolean;
  /** Number of entries to pass over. They are counted in the index, without touching rows. */
  readonly offset: number;
  readonly values: boolean;
}

/** How to open a database: how its keys are written and read, and what is done with its values. */
export interface DatabaseShape {
  readonly keyEncoder: {
    writeKey(key: Key | KeyScratch, target: Uint8Array, start: number): number;
    readKey(source: Uint8Array, start: number, end: number): unknown;
  };
  readonly encoder?: { encode(row: Uint8Array): Uint8Array; decode(bytes: Uint8Array): true };
}

/** Receives rows as they are read. `document` is a view of memory that the next row overwrites. */
export interface RowSink {
  row(document: Uint8Array): void;
}

/**
 * A key buffer that is reused on the way from an index entry to the item. A new array for each would cost more than
 * the lookup.
 */
export class KeyScratch {
  readonly bytes = new Uint8Array(2048);
  length = 0;

  copied(): Key {
    return this.bytes.slice(0, this.length);
  }

  /** Uses a loop: keys are short, and `set` would need a view first. */
  copy(from: Uint8Array, start: number, end: number): void {
    this.length = end - start;
    for (let at = start, to = 0; at < end; at++, to++) this.bytes[to] = from[at] ?? 0;
  }
}

/** Rows up to this size in bytes share views. */
const LARGEST_SHARED = 4096;

/**
 * Views of lmdb's buffer for all values. That buffer claims to be as long as the value but is far longer, so copying
 * all of it throws. Rows have few different lengths, so views are kept by length: making one for each row would cost
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
 * The databases, and the three registers of a look at them: `sink`, `prefix` and `found`. A look is synchronous, so
 * two looks never use them at once. Each look sets `sink` and `prefix` first.
 */
export class Tables {
  readonly items: Database;
  readonly byPrice: Database;
  readonly byCategory: Database;
  readonly byCategoryPrice: Database;
  readonly users: Database;
  readonly exports: Database;
  readonly rows: Database;
  readonly entries: Database;
  readonly changes: Database;
  readonly meta: Database;
  /** Receives the rows read from `items`, `users`, `exports` and `rows`, and the records read from `changes`. */
  sink: RowSink | null = null;
  /** Number of bytes of a key before the part that `found` keeps. Null when keys are not needed. */
  prefix: number | null = null;
  readonly found = new KeyScratch();

  constructor(open: (name: string, shape: DatabaseShape) => Database) {
    const keyEncoder = {
      writeKey,
      readKey: (source: Uint8Array, start: number, end: number): void => {
        if (this.prefix === null) return;
        const at = start + this.prefix;
        // The prefix is followed by the id, or by the rest of a longer price key and then the id.
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
    this.rows = open(NAMES.rows, { keyEncoder, encoder });
    this.entries = open(NAMES.entries, { keyEncoder });
    this.changes = open(NAMES.changes, { keyEncoder, encoder });
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
