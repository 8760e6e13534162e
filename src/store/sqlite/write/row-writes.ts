import { reasonOf } from '../../../base/error-reason.ts';
import { makeBookmark, type Bookmark } from '../../bookmark.ts';
import type { FilledRow, HowToFill, OwnedCollection } from '../../collection.ts';
import { addIndexes, fillByInserts, insertAll } from '../../writes/fill-by-inserts.ts';
import type { Change, RecordChange } from '../../records.ts';
import type { Count, InsertResult, OnConflict } from '../../store.ts';
import { ChangeSet } from './change-set.ts';
import { documentIn } from '../file/checked-rows.ts';
import type { Core } from '../core.ts';
import { ImportLease } from './import-lease.ts';
import { keyOfRow } from '../file/keyed.ts';
import { SideLoad } from './load.ts';
import { newIdentity, type CollectionRecord, type CollectionShape } from '../file/collections.ts';

/** The most rows and bytes of one call in one transaction. */
const TRANSACTION_ROWS = 512;
const TRANSACTION_BYTES = 4 * 1024 * 1024;

/** Writes the rows of a collection in bounded transactions. */
export class RowWrites {
  readonly #core: Core;
  readonly #shape: CollectionShape;
  readonly #transactionRows: number;

  constructor(core: Core, shape: CollectionShape) {
    this.#core = core;
    this.#shape = shape;
    this.#transactionRows = core.options.transactionRows ?? TRANSACTION_ROWS;
  }

  async insert(documents: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    const result = { written: 0, skipped: 0, refused: [] as { index: number; reason: string }[] };
    for (let at = 0; at < documents.length;) {
      const chunk = this.#chunkAt(documents, at);
      const outcomes = await this.#changing((changes) => chunk.map((row) => changes.write(row, onConflict)));
      for (const [n, outcome] of outcomes.entries())
        if (typeof outcome === 'string') result[outcome]++;
        else result.refused.push({ index: at + n, reason: outcome.refused });
      at += chunk.length;
    }
    return result;
  }

  async remove(keys: readonly Bookmark[]): Promise<number> {
    let rows = 0;
    for (let at = 0; at < keys.length; at += this.#transactionRows) {
      const some = keys.slice(at, at + this.#transactionRows);
      rows += await this.#changing((changes) => some.filter((id) => changes.remove(id)).length);
    }
    return rows;
  }

  /** See OwnedCollection.clear. The rows are gone at once; their space is freed afterwards. */
  async clear(signal: AbortSignal): Promise<Count> {
    signal.throwIfAborted();
    const { collections, writes } = this.#core;
    const rows = await writes.run(() => {
      const collection = collections.get(this.#shape.name);
      const removed = collections.rows(collection.name);
      collections.empty({ ...collection, identity: newIdentity() });
      return removed;
    });
    await this.#core.sweep();
    return { rows, is: 'exact' };
  }

  /** See Records.change. */
  async change(id: string, make: Change): Promise<RecordChange> {
    const bookmark = makeBookmark({ _id: id });
    const key = keyOfRow(bookmark);
    if (!key) throw new TypeError('a record has a text as its id');
    return this.#changing((changes, collection) => {
      const stored = this.#core.reader.row(collection.number, key);
      const before = stored && documentIn(stored).slice();
      const after = make(before);
      if (after === 'keep') return { before, after: before };
      if (after === null) changes.remove(bookmark);
      else changes.write(after, 'replace');
      return { before, after };
    });
  }

  /** See OwnedCollection.fill. `writes`: the collection, for rows that appear as they come. */
  async fill(
    writes: Pick<OwnedCollection, 'insert' | 'clear' | 'addIndex'>,
    rows: AsyncIterable<readonly FilledRow[]>,
    how: HowToFill,
  ): Promise<void> {
    const core = this.#core;
    await addIndexes(writes, how);
    if (how.isEndless) {
      await fillByInserts(writes, rows, how);
      return core.writes.run(() => core.collections.show(this.#shape.name));
    }
    const lease = await ImportLease.take(core, this.#shape, how.onRemoved !== undefined);
    const { side } = lease;
    let isWhole = false;
    try {
      if (side) await new SideLoad(core, this.#shape, lease, side, how).fill(rows);
      else await insertAll(writes, rows, how);
      isWhole = true;
    } finally {
      await this.#freed(lease, !isWhole);
    }
  }

  /** Frees what the import does not need any more. */
  async #freed(lease: ImportLease, givesBack: boolean): Promise<void> {
    try {
      await lease.release();
      if (lease.side) await this.#core.sweep(givesBack);
    } catch (error) {
      this.#core.options.onWarning(
        `tables that an import needs no more still take space, until the next start or import: ${reasonOf(error)}`,
      );
    }
  }

  #changing<T>(work: (changes: ChangeSet, collection: CollectionRecord) => T): Promise<T> {
    return this.#core.writes.run(() => {
      const collection = this.#core.collections.get(this.#shape.name);
      const changes = new ChangeSet(this.#core, this.#shape, collection);
      const result = work(changes, collection);
      changes.end();
      return result;
    });
  }

  #chunkAt(documents: readonly Uint8Array[], at: number): readonly Uint8Array[] {
    let end = at;
    for (let bytes = 0; end < documents.length && end - at < this.#transactionRows; end++) {
      if (bytes >= TRANSACTION_BYTES) break;
      bytes += documents[end]?.length ?? 0;
    }
    return documents.slice(at, end);
  }
}
