import { collectionReplaced, snapshotUnsupported } from '../../errors.ts';
import type { Bookmark } from '../bookmark.ts';
import type { LookedUp } from '../change-feed.ts';
import type { Plan, Size } from '../store.ts';
import { documentIn } from './checked-rows.ts';
import { hasValues, wantedOf } from '../has-values.ts';
import { keyOfRow } from './keyed.ts';
import type { SetParts } from './open-set.ts';
import type { SetLooks } from './set-looks.ts';

/** Rows looked up in one look: about 4 ms. */
const LOOKED_UP_AT_ONCE = 512;

/** Looks rows up by their ids. See ChangeFeed. */
export async function lookUp(
  { looks, reader, sets, name }: SetParts,
  setLooks: SetLooks,
  keys: readonly Bookmark[],
  plan: Plan,
  size: Size,
  signal: AbortSignal,
): Promise<LookedUp> {
  if (plan.at !== undefined) throw snapshotUnsupported();
  const wanted = wantedOf(plan.equals);
  const look = (): LookedUp => {
    const { identity } = sets.get(name);
    if (plan.identity !== undefined && plan.identity !== identity) throw collectionReplaced();
    const { number } = setLooks.present(plan);
    const rows: Uint8Array[] = [];
    let [taken, length] = [0, 0];
    for (const id of keys.slice(0, LOOKED_UP_AT_ONCE)) {
      if (rows.length >= size.rows || length >= size.bytes) break;
      taken++;
      const key = keyOfRow(id);
      const row = key && reader.row(number, key);
      if (!row || !hasValues(documentIn(row), wanted)) continue;
      rows.push(row);
      length += row.length;
    }
    // The rows of the other keys may be gone, so nothing is known of what follows.
    const batch = rows.length === 0 ? null : { ...reader.batchOf(rows, taken < keys.length), identity };
    return { taken, batch };
  };
  return looks.take(look, signal, size.patient);
}
