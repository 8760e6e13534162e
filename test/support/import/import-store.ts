import type { ImportTarget } from '../../../src/import/command.ts';
import type { ImportedStore } from '../../../src/import/import.ts';
import { fillByInserts } from '../../../src/store/writes/fill-by-inserts.ts';
import { BSON, type Document } from '../../../src/store/values/bson.ts';
import { KEY_EXISTS } from '../../../src/store/bookmark.ts';
import type { Count, InsertResult, OwnedCollection, OnConflict } from '../../../src/store/store.ts';

export function targetOf(store: ImportedStore): ImportTarget {
  return { exists: true, open: () => Promise.resolve(store) };
}

export interface InsertCall {
  readonly rows: readonly Uint8Array[];
  readonly onConflict: OnConflict;
}

/** A store for imports. It keeps rows by id in a Map, and lets a test delay, refuse or break inserts. */
export class ImportStore implements Pick<OwnedCollection, 'insert' | 'count' | 'clear' | 'fill'> {
  readonly calls: InsertCall[] = [];
  readonly #rows = new Map<string, Uint8Array>();
  readonly #onInsert: (call: InsertCall, number: number) => Promise<void> | void;
  /** The number of inserts in progress, and its maximum so far. */
  underWay = 0;
  mostUnderWay = 0;

  /** `onInsert` runs before each insert, numbered from 1. It may wait, or throw in place of the store. */
  constructor(onInsert: (call: InsertCall, number: number) => Promise<void> | void = () => undefined) {
    this.#onInsert = onInsert;
  }

  /** The rows in the order in which they were written, deserialized with bson's defaults. */
  get documents(): Document[] {
    return [...this.#rows.values()].map((row) => BSON.deserialize(row));
  }

  get size(): number {
    return this.#rows.size;
  }

  async insert(rows: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    const call = { rows, onConflict };
    this.calls.push(call);
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay);
    try {
      await this.#onInsert(call, this.calls.length);
      return this.#write(call);
    } finally {
      this.underWay--;
    }
  }

  fill(...[rows, how]: Parameters<OwnedCollection['fill']>): Promise<void> {
    return fillByInserts(this, rows, how);
  }

  count(): Promise<Count> {
    return Promise.resolve({ rows: this.#rows.size, is: 'exact' });
  }

  async clear(): Promise<Count> {
    const count = await this.count();
    this.#rows.clear();
    return count;
  }

  #write({ rows, onConflict }: InsertCall): InsertResult {
    let written = 0;
    let skipped = 0;
    const refused: { index: number; reason: string }[] = [];
    for (const [index, row] of rows.entries()) {
      const id = JSON.stringify(BSON.deserialize(row)._id);
      if (!this.#rows.has(id) || onConflict === 'replace') {
        this.#rows.set(id, row);
        written++;
      } else if (onConflict === 'skip') skipped++;
      else refused.push({ index, reason: KEY_EXISTS });
    }
    return { written, skipped, refused };
  }
}
