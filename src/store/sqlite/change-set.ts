import { KEY_EXISTS, type Bookmark } from '../bookmark.ts';
import type { Key } from '../keys.ts';
import type { OnConflict } from '../store.ts';
import { DamagedRowError, documentIn, storedRow } from './checked-rows.ts';
import { bytesIn, type SqlValue } from './connection.ts';
import type { Core } from './core.ts';
import { keyOfRow, keyRow, type KeyedRow } from './keyed.ts';
import { columnOf, rowsTable } from './layout.ts';
import { LARGE_BYTES, type IndexRecord, type SetRecord, type SetShape } from './sets.ts';

/** What became of a row. A text: why it was refused. */
export type Outcome = 'written' | 'skipped' | { readonly refused: string };

/** The changes that one transaction makes to a set. `end` is called last. */
export function setChanges({ connection, sets, log }: Core, shape: SetShape, begun: SetRecord) {
  const { number, name } = begun;
  const notes = shape.hasChanges ? log.begin(begun) : null;
  const table = rowsTable(number);
  const columns = ['k', 'd', ...begun.indexes.map((index) => columnOf(index.number))];
  const insertSql =
    `insert into ${table}(${columns.join()}) values (${columns.map(() => '?').join()})` +
    ' on conflict(k) do nothing';
  const updateSql = `update ${table} set ${columns.map((column) => `${column} = ?`).join()} where n = ?`;
  let set = begun;
  let added = 0;

  return {
    write: (document: Uint8Array, onConflict: OnConflict): Outcome => {
      const row = shape.refusalOf(document) ?? keyRow(document, set.indexes);
      if (typeof row === 'string') return { refused: row };
      const stored = storedRow(document);
      if (connection.run(insertSql, row.key, stored, ...row.entries) > 0) {
        keepOrder(row.key);
        added++;
        notes?.addNew(row.document);
      } else if (onConflict === 'skip') return 'skipped';
      else if (onConflict === 'fail') return { refused: KEY_EXISTS };
      else replace(row, stored);
      note(row);
      return 'written';
    },
    remove: (id: Bookmark): boolean => {
      const key = keyOfRow(id);
      const before = key && rowOf(key);
      if (!before) return false;
      connection.run(`delete from ${table} where n = ?`, before.n);
      added--;
      notes?.addRemoved(before.document);
      return true;
    },
    end: (): void => {
      sets.addRows(name, added);
      if (set.isUnfilled && added > 0) put({ ...set, isUnfilled: undefined });
      if (notes) log.prune(set);
    },
  };

  /** Notes when a new row, which lies behind all others, has no higher key than they. */
  function keepOrder(key: Key): void {
    if (!set.isInOrder || !connection.get(`select 1 from ${table} where k > ? limit 1`, key)) return;
    put({ ...set, isInOrder: undefined });
  }

  function replace(row: KeyedRow, stored: Uint8Array): void {
    const before = rowOf(row.key);
    if (!before) throw new DamagedRowError('a row that exists cannot be read');
    connection.run(updateSql, row.key, stored, ...row.entries, before.n);
    notes?.addReplaced(before.document, row.document);
  }

  function rowOf(key: Key): { readonly n: SqlValue; readonly document: Uint8Array } | null {
    const found = connection.get(`select n, d from ${table} where k = ?`, key);
    const stored = bytesIn(found, 'd');
    return found && stored ? { n: found.n ?? null, document: documentIn(stored) } : null;
  }

  /** Notes what the row changes of the set itself. */
  function note({ document, unusable }: KeyedRow): void {
    const isFirstLarge = document.length > LARGE_BYTES && set.hasLargeRows !== true;
    if (unusable.length === 0 && !isFirstLarge) return;
    put({ ...withUnusable(set, unusable), ...(isFirstLarge && { hasLargeRows: true }) });
  }

  function put(changed: SetRecord): void {
    set = changed;
    sets.put(changed);
  }
}

/** The set with these indexes unusable. The first reason stays. */
export function withUnusable(set: SetRecord, unusable: KeyedRow['unusable']): SetRecord {
  const reasons = new Map(unusable.map(({ index, reason }) => [index, reason]));
  const indexes = set.indexes.map((index, at): IndexRecord => {
    const reason = reasons.get(at);
    return reason === undefined || index.unusable !== undefined ? index : { ...index, unusable: reason };
  });
  return { ...set, indexes };
}
