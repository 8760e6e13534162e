import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../../base/error-reason.ts';
import type { Finding } from '../../../base/finding.ts';
import { compareKeys } from '../../values/keys.ts';
import { openToRead } from './backup.ts';
import { documentAt } from './checked-rows.ts';
import { bytesIn, type Connection, type SqlRow } from './connection.ts';
import { mmapBytesIn, sizeOf } from './directory.ts';
import { freeBytes, RESERVE_BYTES } from './errors.ts';
import { FILE } from './file.ts';
import { keyRow } from './keyed.ts';
import { columnOf, columnsOf, indexName, rowsIn } from './layout.ts';
import { isWhole, nameOf, Collections, type IndexRecord, type CollectionRecord } from './collections.ts';

const ROWS_AT_ONCE = 500;
const MOST_LISTED = 100;

type Report = (line: string) => void;

/** Examines the embedded store in a directory for what the server promises, and writes nothing. */
export async function examineSqlite(directory: string, report: (finding: Finding) => void): Promise<void> {
  const see = async (promise: string, query: string, look: () => string | Promise<string>) => {
    try {
      report({ promise, holds: true, seen: `${query}: ${await look()}` });
    } catch (error) {
      report({ promise, holds: false, seen: `${query}: ${reasonOf(error)}` });
    }
  };
  const path = join(directory, FILE);
  if (!(await sizeOf(path))) {
    const seen = `stat: ${path} is missing or empty: the first start of the server makes it`;
    report({ promise: 'there is a store', holds: false, seen });
    return;
  }
  await see('the store is on a local disk', 'statfs', async () => {
    await mmapBytesIn(directory);
    return directory;
  });
  await see('this user may write it', 'access', async () => {
    await access(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    return directory;
  });
  await see('there is space for writes', 'statfs', () => {
    const bytes = freeBytes(directory);
    const free = `${Math.round(bytes / 2 ** 20)} MiB are free`;
    if (bytes < RESERVE_BYTES) throw new Error(free);
    return free;
  });
  await see('every row and index entry is whole', 'sluice check', async () => {
    const lines: string[] = [];
    const faults = await check(path, (line) => lines.push(line));
    if (faults > 0) throw new Error(lines.join('; '));
    return lines.join('; ');
  });
}

/**
 * Checks one state of a store's file: its pages, the checksum of each row, its key and its entries in the indexes, the
 * counters of rows. Reports a line for each collection and each fault. Resolves with the number of faults. Rejects when the file is
 * no store.
 */
export async function check(path: string, report: Report): Promise<number> {
  const connection = await openToRead(path);
  let faults = 0;
  const fault = (line: string): void => {
    if (++faults <= MOST_LISTED) report(line);
  };
  const noting = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      fault(reasonOf(error));
    }
  };
  try {
    connection.run('begin');
    noting(() => {
      const lines = connection.all('pragma integrity_check').map((row) => String(Object.values(row)[0]));
      for (const line of lines) if (line !== 'ok') fault(line);
    });
    const collections = new Collections(connection);
    noting(() => {
      for (const name of collections.names())
        noting(() => checkCollection(connection, collections, collections.get(name), { report, fault }));
    });
  } finally {
    connection.close();
  }
  if (faults > MOST_LISTED) report(`${faults - MOST_LISTED} more faults`);
  return faults;
}

function checkCollection(
  connection: Connection,
  collections: Collections,
  collection: CollectionRecord,
  { report, fault }: { readonly report: Report; readonly fault: Report },
): void {
  const { label, name, number, indexes } = collection;
  for (const column of ['k', ...columnsOf(indexes.filter(isWhole))])
    if (!connection.get('select 1 from sqlite_schema where name = ?', indexName(number, column)))
      fault(`${label}: the index ${indexName(number, column)} is missing`);
  const columns = ['n', 'k', 'd', ...columnsOf(indexes)];
  const atOnce = collection.hasLargeRows === true ? 1 : ROWS_AT_ONCE;
  let rows = 0;
  for (const row of rowsIn(connection, number, columns, atOnce)) {
    rows++;
    for (const line of faultsOf(row, indexes)) fault(`${label}: row ${String(row.n)} ${line}`);
  }
  const counted = collections.rows(name);
  if (rows !== counted) fault(`${label}: there are ${rows} rows, and the counter says ${counted}`);
  report(`${label}: ${rows} rows, ${indexes.length} indexes`);
}

/** What is wrong with a row, as the ends of sentences. */
function faultsOf(row: SqlRow, indexes: readonly IndexRecord[]): readonly string[] {
  const keyed = keyedIn(row, indexes);
  if (typeof keyed === 'string') return [keyed];
  const faults = isSame(bytesIn(row, 'k'), keyed.key) ? [] : ['has another key'];
  for (const [at, entry] of keyed.entries.entries()) {
    const index = indexes[at];
    if (!index || index.unusable !== undefined || isAhead(index, keyed.key)) continue;
    const isRight = isSame(bytesIn(row, columnOf(index.number)), entry);
    if (!isRight) faults.push(`has another entry in the index ${nameOf(index.paths)}`);
  }
  return faults;
}

function keyedIn(row: SqlRow, indexes: readonly IndexRecord[]): ReturnType<typeof keyRow> {
  try {
    return keyRow(documentAt(row, 'd'), indexes);
  } catch {
    return 'does not have the bytes that were written';
  }
}

/** Whether an index in building need not have a row yet. */
function isAhead({ builtTo }: IndexRecord, key: Uint8Array): boolean {
  return builtTo !== null && compareKeys(key, Buffer.from(builtTo, 'hex')) > 0;
}

function isSame(found: Uint8Array | null, expected: Uint8Array | null): boolean {
  return found && expected ? compareKeys(found, expected) === 0 : found === expected;
}
