/** The limit of the embedded store: the statement that reads a batch, over and over. Its rows are discarded. */
import { join } from 'node:path';
import { bytesIn, Connection } from '../../src/store/sqlite/file/connection.ts';
import { FILE } from '../../src/store/sqlite/file/file.ts';
import { mmapBytesIn } from '../../src/store/sqlite/file/directory.ts';
import { rangeOf, restBehind, sqlOf } from '../../src/store/sqlite/read/range.ts';
import { Collections, RESOURCE } from '../../src/store/sqlite/file/collections.ts';
import { answerLines } from './asked.ts';

const ROWS_AT_ONCE = 2_000;

const directory = process.env.DATA_DIR ?? '';
const connection = new Connection(join(directory, FILE), {
  readOnly: true,
  mmapBytes: await mmapBytesIn(directory),
});
const sets = new Collections(connection);

await answerLines((plan) => {
  let rows = 0;
  let bytes = 0;
  let range = rangeOf(sets.get(`${RESOURCE}items`), plan, undefined);
  while (range) {
    const { column, low, high, reverse } = range;
    const last = reverse ? 'min' : 'max';
    const found = connection.get(
      `select cast(group_concat(cast(d as text), '') as blob) d, ${last}(k) k, count(*) n
       from (select d, ${column} k ${sqlOf(range)} limit ${ROWS_AT_ONCE})`,
      low,
      high,
    );
    rows += Number(found?.n);
    bytes += bytesIn(found, 'd')?.length ?? 0;
    const key = bytesIn(found, 'k');
    range = key && restBehind(range, key);
  }
  return { rows, bytes };
});
connection.close();
