import type { Bookmark } from '../../bookmark.ts';
import { keyOfPlace } from '../../order.ts';

/** The keys without those that name the row of another one: 7 and 7.0 are the key of one row. */
export function distinctKeys(keys: readonly Bookmark[]): readonly Bookmark[] {
  const byPlace = new Map<string, Bookmark>();
  for (const key of keys) {
    const place = Buffer.from(keyOfPlace(key)).toString('latin1');
    if (!byPlace.has(place)) byPlace.set(place, key);
  }
  return [...byPlace.values()];
}
