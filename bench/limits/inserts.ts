/** The limit of an import into the embedded store: inserts of rows in memory, in order of their keys, without indexes. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SyntheticItems } from '../../src/import/synthetic.ts';
import { DatabaseSync } from '../../src/base/sqlite.ts';
import { answerRows } from './written.ts';

const ROWS_PER_TRANSACTION = 50_000;
const ID = { start: 9, end: 21 };

await answerRows(async (rows) => {
  const items = new SyntheticItems(1);
  const documents = Array.from({ length: rows }, () => items.next());
  const directory = await mkdtemp(join(tmpdir(), 'sluice-bench-inserts-'));
  const database = new DatabaseSync(join(directory, 'rows.db'));
  database.exec(
    'pragma journal_mode=wal; create table rows(n integer primary key, k blob not null, d blob not null)',
  );
  const insert = database.prepare('insert into rows(k, d) values (?, ?)');
  const started = performance.now();
  for (let at = 0; at < rows; at += ROWS_PER_TRANSACTION) {
    database.exec('begin');
    for (const row of documents.slice(at, at + ROWS_PER_TRANSACTION))
      insert.run(row.subarray(ID.start, ID.end), row);
    database.exec('commit');
  }
  const seconds = (performance.now() - started) / 1000;
  database.close();
  await rm(directory, { recursive: true });
  return { rows, bytes: documents.reduce((sum, { length }) => sum + length, 0), seconds };
});
