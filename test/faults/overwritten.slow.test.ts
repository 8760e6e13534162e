import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../support/directory.ts';
import { childServer } from '../support/process/child-server.ts';
import { insertItems, makeItems } from '../support/store/items.ts';
import { openDirectory } from '../support/store/sqlite/sqlite.ts';

const ROWS = 30_000;
const READERS = 8;
const TIMES = 3;

/** The folder of a store that was closed in order, so that all of it is in its file. */
async function storeOf(t: Parameters<typeof temporaryFolder>[0], rows: number): Promise<string> {
  const directory = await temporaryFolder(t);
  const store = await openDirectory(directory);
  await insertItems(store.items, makeItems(rows));
  await store.close();
  return directory;
}

// `cp` writes into the file that is there: pages of a mapped file that go while they are read end the process (SIGBUS).
for (let n = 0; n < TIMES; n++)
  test(`a shorter file that is copied over the store under ${READERS} streams: no stream ends in order with other rows (${n + 1})`, async (t) => {
    const directory = await storeOf(t, ROWS);
    const other = await storeOf(t, 10);
    const server = await childServer(t, { MONGODB_URI: '', DATA_DIR: directory, SAMPLE: 'off' });
    let begun = 0;
    const rowsOf = async (): Promise<number | 'cut'> => {
      try {
        const { body } = await fetch(new URL('/items/stream?sort=price_asc', server.url));
        let text = '';
        for await (const chunk of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
          if (text === '') begun++;
          text += chunk;
        }
        return text.split('\n').filter((line) => line.startsWith('{"id"')).length;
      } catch {
        return 'cut';
      }
    };
    const readings = Array.from({ length: READERS }, rowsOf);
    while (begun < READERS / 2) await new Promise((resolve) => setImmediate(resolve));
    await copyFile(join(other, 'sluice.db'), join(directory, 'sluice.db'));
    const later = Array.from({ length: READERS }, rowsOf);
    const ends = await Promise.all([...readings, ...later]);
    const died = await Promise.race([server.ended, Promise.resolve('lives')]);
    t.diagnostic(
      `${ends.filter((end) => end === 'cut').length} of ${ends.length} streams were cut; the process: ${died ?? 'SIGBUS'}`,
    );
    for (const end of ends)
      assert.ok(end === 'cut' || end === ROWS, `a stream ended in order with ${end} rows`);
  });
