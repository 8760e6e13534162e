import { makeBookmark, type Bookmark } from '../bookmark.ts';
import type { Change, Changed } from '../records.ts';
import type { Count, InsertResult, OnConflict } from '../store.ts';
import { setChanges } from './change-set.ts';
import { documentIn } from './checked-rows.ts';
import type { Core } from './core.ts';
import { keyOfRow } from './keyed.ts';
import { newIdentity, type SetRecord, type SetShape } from './sets.ts';

/** The most rows and bytes of one call in one transaction. */
const TRANSACTION_ROWS = 512;
const TRANSACTION_BYTES = 4 * 1024 * 1024;

/** Writes a set in bounded transactions. */
export function setWrites(core: Core, shape: SetShape) {
  const { sets, writes } = core;
  const { transactionRows = TRANSACTION_ROWS } = core.options;
  const changing = <T>(work: (changes: ReturnType<typeof setChanges>, set: SetRecord) => T): Promise<T> =>
    writes.run(() => {
      const set = sets.get(shape.name);
      const changes = setChanges(core, shape, set);
      const result = work(changes, set);
      changes.end();
      return result;
    });

  return { insert, remove, clear, change };

  async function insert(documents: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    const result = { written: 0, skipped: 0, refused: [] as { index: number; reason: string }[] };
    for (let at = 0; at < documents.length;) {
      const chunk = chunkAt(documents, at);
      const outcomes = await changing((changes) => chunk.map((row) => changes.write(row, onConflict)));
      for (const [n, outcome] of outcomes.entries())
        if (typeof outcome === 'string') result[outcome]++;
        else result.refused.push({ index: at + n, reason: outcome.refused });
      at += chunk.length;
    }
    return result;
  }

  async function remove(keys: readonly Bookmark[]): Promise<number> {
    let rows = 0;
    for (let at = 0; at < keys.length; at += transactionRows) {
      const some = keys.slice(at, at + transactionRows);
      rows += await changing((changes) => some.filter((id) => changes.remove(id)).length);
    }
    return rows;
  }

  /** See OwnedCollection.clear. The rows are gone at once; their space is freed afterwards. */
  async function clear(signal: AbortSignal): Promise<Count> {
    signal.throwIfAborted();
    const rows = await writes.run(() => {
      const set = sets.get(shape.name);
      const removed = sets.rows(set.name);
      sets.empty({ ...set, identity: newIdentity() });
      return removed;
    });
    await core.sweep();
    return { rows, is: 'exact' };
  }

  async function change(id: string, make: Change): Promise<Changed> {
    const bookmark = makeBookmark({ _id: id });
    const key = keyOfRow(bookmark);
    if (!key) throw new TypeError('a record has a text as its id');
    return changing((changes, set) => {
      const stored = core.reader.row(set.number, key);
      const before = stored && documentIn(stored).slice();
      const after = make(before);
      if (after === 'keep') return { before, after: before };
      if (after === null) changes.remove(bookmark);
      else changes.write(after, 'replace');
      return { before, after };
    });
  }

  function chunkAt(documents: readonly Uint8Array[], at: number): readonly Uint8Array[] {
    let end = at;
    for (let bytes = 0; end < documents.length && end - at < transactionRows; end++) {
      if (bytes >= TRANSACTION_BYTES) break;
      bytes += documents[end]?.length ?? 0;
    }
    return documents.slice(at, end);
  }
}
