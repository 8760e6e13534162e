import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { DatabaseSync } from '../../../../src/base/sqlite.ts';
import { ITEM_COLLECTION } from '../../../../src/resources/item-collection.ts';
import { makeBookmark } from '../../../../src/store/bookmark.ts';
import { Slots } from '../../../../src/store/turns/slots.ts';
import { documentIn, storedRow } from '../../../../src/store/sqlite/file/checked-rows.ts';
import { Connection, bytesIn } from '../../../../src/store/sqlite/file/connection.ts';
import { FILE } from '../../../../src/store/sqlite/file/file.ts';
import { keyRow } from '../../../../src/store/sqlite/file/keyed.ts';
import { columnOf, logTable, rowsTable } from '../../../../src/store/sqlite/file/layout.ts';
import { Maintenance } from '../../../../src/store/sqlite/file/maintenance.ts';
import { NEW, Collections } from '../../../../src/store/sqlite/file/collections.ts';
import { openSqlite, type SqliteOptions } from '../../../../src/store/sqlite/sqlite-store.ts';
import type { OpenStore } from '../open-store.ts';
import { withItems } from '../with-items.ts';
import { temporaryFolder } from '../../directory.ts';

/** The embedded store of a directory. */
export async function openDirectory(directory: string, options: Partial<SqliteOptions> = {}) {
  return withItems(await openSqlite({ directory, slots: new Slots(), ...options }));
}

/** The embedded store of a directory, closed after the test. */
export async function openFor(t: TestContext, directory: string, options: Partial<SqliteOptions> = {}) {
  const store = await openDirectory(directory, options);
  t.after(() => store.close());
  return store;
}

/** Does this once, when a load is about to insert rows in its thread. */
export function beforeInsert(t: TestContext, work: () => Promise<unknown>): void {
  const inserting = t.mock.method(
    Maintenance.prototype,
    'insert',
    async function (this: Maintenance, ...asked: Parameters<Maintenance['insert']>) {
      inserting.mock.restore();
      await work();
      return this.insert(...asked);
    },
  );
}

/** A new embedded store. */
export async function testSqlite(
  t: TestContext,
  options: Partial<SqliteOptions> = {},
): Promise<OpenStore & { readonly directory: string }> {
  const directory = await temporaryFolder(t);
  const { slots = new Slots() } = options;
  const store = await openFor(t, directory, { ...options, slots });
  const remove = async (_id: unknown): Promise<void> => {
    await store.items.remove([makeBookmark({ _id })]);
  };
  return { store, slots, remove, directory };
}

/** Gives a file of resources the set of items that every start of a version before made. */
export function makeOldItems(directory: string): void {
  const { sets, close } = openRaw(directory);
  const indexes = ITEM_COLLECTION.indexes.map((paths, n) => ({ number: n + 1, paths, builtTo: null }));
  sets.create({ ...NEW, name: 'items', label: 'items', indexes });
  close();
}

/** The rows of a query on any SQLite file. Each is the list of its values. */
export function queryFile(path: string, sql: string): unknown[][] {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return database
      .prepare(sql)
      .all()
      .map((row) =>
        Object.values(row as object).map((value: unknown) =>
          value instanceof Uint8Array ? Buffer.from(value) : value,
        ),
      );
  } finally {
    database.close();
  }
}

/** The set of items in a file. */
export const ITEMS = 'resource items';

/** Opens the contents of the store's file, with a connection of its own. The sets of resources are named `resource NAME`. */
export function openRaw(directory: string) {
  const connection = new Connection(join(directory, FILE));
  const sets = new Collections(connection);
  const stored = (name: string) => {
    const record = sets.get(name);
    return { record, found: connection.all(`select * from ${rowsTable(record.number)} order by k`) };
  };
  return {
    connection,
    sets,
    count: (name = ITEMS) => sets.rows(name),
    rows: (name = ITEMS) => stored(name).found.map((row) => documentIn(bytesOf(row, 'd'))),
    /** The number of changes in the log of a set. */
    changes: (name = ITEMS) =>
      Number(connection.get(`select count(*) n from ${logTable(sets.get(name).number)}`)?.n),
    /** Puts the bytes of a document in the place of another one, without its index entries. */
    damage: (from: Uint8Array, to: Uint8Array, name = ITEMS) => {
      const table = rowsTable(sets.get(name).number);
      if (connection.run(`update ${table} set d = ? where d = ?`, storedRow(to), storedRow(from)) !== 1)
        throw new Error('the row to be damaged is not there');
    },
    /** The faults of the file: pages and index entries that are wrong, rows with wrong keys, wrong counts. */
    faults: (name = ITEMS): string[] => {
      const { record, found } = stored(name);
      const faults = connection
        .all('pragma integrity_check')
        .map((row) => String(Object.values(row)[0]))
        .filter((line) => line !== 'ok');
      for (const row of found) {
        const keyed = keyRow(documentIn(bytesOf(row, 'd')), record.indexes);
        if (typeof keyed === 'string') faults.push(keyed);
        else
          [keyed.key, ...keyed.entries].forEach((key, at) => {
            const index = record.indexes[at - 1];
            if (index && (index.unusable !== undefined || index.builtTo !== null)) return;
            const column = index ? columnOf(index.number) : 'k';
            if (hex(bytesIn(row, column)) !== hex(key))
              faults.push(`${column} of ${hex(keyed.key)} is ${hex(bytesIn(row, column))}`);
          });
      }
      const count = sets.rows(name);
      return count === found.length ? faults : [...faults, `counted ${count} of ${found.length} rows`];
    },
    close: () => connection.close(),
  };
}

function bytesOf(row: Parameters<typeof bytesIn>[0], column: string): Uint8Array {
  const bytes = bytesIn(row, column);
  if (!bytes) throw new Error(`a row has no ${column}`);
  return bytes;
}

function hex(key: Uint8Array | null): string {
  return key ? Buffer.from(key).toString('hex') : 'nothing';
}
