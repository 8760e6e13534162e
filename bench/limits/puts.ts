/** The limit of an import into the embedded store: lmdb's puts in order of key, of rows in memory, without indexes. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';
import { SyntheticItems } from '../../src/import/synthetic.ts';
import { answerRows } from './written.ts';

const ROWS_PER_TRANSACTION = 50_000;
const ID = { start: 9, end: 21 };

await answerRows(async (rows) => {
  const items = new SyntheticItems(1);
  const documents = Array.from({ length: rows }, () => items.next());
  const directory = await mkdtemp(join(tmpdir(), 'sluice-bench-puts-'));
  const root = open({
    path: join(directory, 'rows.mdb'),
    noSubdir: true,
    encoding: 'binary',
    keyEncoding: 'binary',
  });
  const started = performance.now();
  for (let at = 0; at < rows; at += ROWS_PER_TRANSACTION)
    root.transactionSync(() => {
      for (const row of documents.slice(at, at + ROWS_PER_TRANSACTION))
        root.putSync(Buffer.from(row.subarray(ID.start, ID.end)), row, { append: true });
    });
  await root.flushed;
  const seconds = (performance.now() - started) / 1000;
  const written = root.getCount();
  await root.close();
  await rm(directory, { recursive: true });
  return { rows: written, bytes: documents.reduce((sum, { length }) => sum + length, 0), seconds };
});
