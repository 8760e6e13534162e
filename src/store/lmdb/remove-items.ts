import type { Bookmark } from '../bookmark.ts';
import { ITEMS, type ChangeLog } from './feed/log.ts';
import { keyOfId, keyRow } from './row.ts';
import type { Tables } from './tables.ts';
import { COUNT_KEY, countBytes, INDEXES, itemCount } from './write.ts';

/** In a transaction: removes the items with these keys, and their index entries. Returns how many there were. */
export function removeItems(tables: Tables, log: ChangeLog, keys: readonly Bookmark[]): number {
  const changes = log.begin(ITEMS);
  let removed = 0;
  for (const id of keys) {
    const key = keyOfId(id);
    const document = key && tables.items.getBinary(key);
    if (!document) continue;
    const row = keyRow(document);
    if (typeof row === 'string') throw new Error(`a stored row cannot be read: ${row}`);
    tables.items.removeSync(row.id);
    for (const index of INDEXES) tables[index].removeSync(row[index]);
    changes.addRemoved(row.idValue, document);
    removed++;
  }
  if (removed > 0) tables.meta.putSync(COUNT_KEY, countBytes(itemCount(tables.meta) - removed));
  changes.end(() => itemCount(tables.meta));
  return removed;
}
