import type { Bookmark } from '../../bookmark.ts';
import type { ChangeLog } from '../feed/log.ts';
import type { Tables } from '../tables.ts';
import { keyOfRow, keyRow, rowsPrefix } from './keyed.ts';
import type { Resources } from './record.ts';
import { countOf, idOf, recordOf, setCount } from './write.ts';

/** In a transaction: removes the rows with these keys, and their entries. Returns how many there were. */
export function removeFromResource(
  tables: Tables,
  resources: Resources,
  collection: string,
  log: ChangeLog,
  keys: readonly Bookmark[],
): number {
  const record = recordOf(resources, collection);
  const changes = log.begin(record.number);
  let removed = 0;
  for (const id of keys) {
    const key = keyOfRow(rowsPrefix(record), id);
    const found = key && tables.rows.getBinary(key);
    if (!found) continue;
    const row = keyRow(found, record);
    tables.rows.removeSync(key);
    // A row that is too long for an index that came later has made it unusable.
    if (typeof row !== 'string') for (const entry of row.entries) if (entry) tables.entries.removeSync(entry);
    changes.addRemoved(idOf(found), found);
    removed++;
  }
  if (removed > 0) setCount(tables, record, countOf(tables, record) - removed);
  changes.end(() => countOf(tables, record));
  return removed;
}
