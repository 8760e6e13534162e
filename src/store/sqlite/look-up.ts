import { collectionReplaced, snapshotUnsupported } from '../../errors.ts';
import type { Batch } from '../batch.ts';
import type { Bookmark } from '../bookmark.ts';
import { textOf } from '../shared-feed.ts';
import type { Plan, Size } from '../store.ts';
import { documentIn } from './checked-rows.ts';
import { hasValues, keyOfRow, wantedOf } from './keyed.ts';
import type { SetParts } from './open-set.ts';
import type { SetLooks } from './set-looks.ts';
import type { SetRecord } from './sets.ts';

/** Rows looked up in one look: about 4 ms. */
const LOOKED_UP_AT_ONCE = 512;

/** Looks rows up by their ids. See ChangeFeed.rows. */
export async function* lookUp(
  { looks, reader, sets, name }: SetParts,
  setLooks: SetLooks,
  keys: readonly Bookmark[],
  plan: Plan,
  size: Size,
  signal: AbortSignal,
): AsyncGenerator<Batch, void, undefined> {
  if (plan.at !== undefined) throw snapshotUnsupported();
  const wanted = wantedOf(plan.equals);
  const done = new Set<string>(); // 7 and 7.0 lead to one row
  let [at, { identity }] = [0, plan];

  /** The next stored rows that fit the plan. */
  const rowsOf = (set: SetRecord): readonly Uint8Array[] => {
    const rows: Uint8Array[] = [];
    const next = keys.slice(at, at + LOOKED_UP_AT_ONCE);
    let length = 0;
    for (const id of next) {
      if (rows.length >= size.rows || length >= size.bytes) break;
      at++;
      const key = keyOfRow(id);
      const text = key ? textOf(key) : '';
      if (!key || done.has(text)) continue;
      done.add(text);
      const row = reader.row(set.number, key);
      if (!row || !hasValues(documentIn(row), wanted)) continue;
      rows.push(row);
      length += row.length;
    }
    return rows;
  };
  const look = (): Batch | null => {
    const current = sets.get(name);
    identity ??= current.identity; // without one in the plan, all batches are still of one collection
    if (identity !== current.identity) throw collectionReplaced();
    const rows = rowsOf(setLooks.present(plan));
    // The rows of the other keys may be gone.
    return rows.length === 0 ? null : { ...reader.batchOf(rows, at < keys.length), identity };
  };
  while (at < keys.length) {
    const batch = await looks.take(look, signal, size.patient);
    if (batch) yield batch;
  }
}
