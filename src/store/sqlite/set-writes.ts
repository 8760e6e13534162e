import type { Change, Changed } from '../records.ts';
import type { Count, InsertResult, OnConflict } from '../store.ts';
import { SetChanges, type Outcome } from './change-set.ts';
import { documentIn } from './checked-rows.ts';
import { emptySet } from './load.ts';
import { makeBookmark, type Bookmark } from '../bookmark.ts';
import { keyOfRow } from './keyed.ts';
import type { LoadGate } from './load-gate.ts';
import type { SetParts } from './set-parts.ts';
import { newIdentity } from './sets.ts';

/** The most rows and bytes of one call in one transaction. */
const TRANSACTION_ROWS = 512;
const TRANSACTION_BYTES = 4 * 1024 * 1024;

/** Writes a set in bounded transactions. */
export class SetWrites {
  readonly #options: SetParts;
  readonly #gate: LoadGate;

  constructor(options: SetParts, gate: LoadGate) {
    [this.#options, this.#gate] = [options, gate];
  }

  /** See Collection.insert. */
  async insert(documents: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    const result = { written: 0, skipped: 0, refused: [] as { index: number; reason: string }[] };
    const note = (outcome: Outcome, index: number): void => {
      if (outcome === 'written') result.written++;
      else if (outcome === 'skipped') result.skipped++;
      else result.refused.push({ index, reason: outcome.refused });
    };
    for (let at = 0; at < documents.length;) {
      const chunk = this.#chunkAt(documents, at);
      const outcomes = await this.#change((changes) => chunk.map((row) => changes.write(row, onConflict)));
      for (const [n, outcome] of outcomes.entries()) note(outcome, at + n);
      at += chunk.length;
    }
    return result;
  }

  /** See Collection.remove. */
  async remove(keys: readonly Bookmark[]): Promise<number> {
    const { transactionRows = TRANSACTION_ROWS } = this.#options;
    let rows = 0;
    for (let at = 0; at < keys.length; at += transactionRows) {
      const some = keys.slice(at, at + transactionRows);
      rows += await this.#change((changes) => some.filter((id) => changes.remove(id)).length);
    }
    return rows;
  }

  /** See OwnedCollection.clear. The rows are gone at once; their space is freed afterwards. */
  async clear(signal: AbortSignal): Promise<Count> {
    const { sets, sweep } = this.#options;
    signal.throwIfAborted();
    const rows = await this.#gate.write((set) => {
      const removed = sets.rows(set.name);
      emptySet(this.#options, { ...set, identity: newIdentity() });
      return removed;
    });
    await sweep();
    return { rows, is: 'exact' };
  }

  /** See Records.change. */
  async change(id: string, change: Change): Promise<Changed> {
    const bookmark = makeBookmark({ _id: id });
    const key = keyOfRow(bookmark);
    if (!key) throw new TypeError('a record has a text as its id');
    const { reader } = this.#options;
    return this.#gate.write((set) => {
      const stored = reader.row(set.number, key);
      const before = stored && documentIn(stored).slice();
      const after = change(before);
      if (after === 'keep') return { before, after: before };
      const changes = new SetChanges(this.#options, set);
      if (after === null) changes.remove(bookmark);
      else changes.write(after, 'replace');
      changes.end();
      return { before, after };
    });
  }

  #change<T>(work: (changes: SetChanges) => T): Promise<T> {
    return this.#gate.write((set) => {
      const changes = new SetChanges(this.#options, set);
      const result = work(changes);
      changes.end();
      return result;
    });
  }

  #chunkAt(documents: readonly Uint8Array[], at: number): readonly Uint8Array[] {
    const { transactionRows = TRANSACTION_ROWS } = this.#options;
    let end = at;
    for (let bytes = 0; end < documents.length && end - at < transactionRows; end++) {
      if (bytes >= TRANSACTION_BYTES) break;
      bytes += documents[end]?.length ?? 0;
    }
    return documents.slice(at, end);
  }
}
