import assert from 'node:assert/strict';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { BSON } from '../../../src/store/bson.ts';
import { FILE } from '../../../src/store/sqlite/file.ts';
import { catalogue } from '../../support/resources/catalogue.ts';
import { testDirectory } from '../../support/store/sqlite/sqlite.ts';
import { samples } from '../../support/telemetry/metrics.ts';
import { request } from '../../support/engine/raw.ts';
import { serverOn } from '../../support/process/server.ts';

const READERS = 500;
const ROUNDS = 20;
/** 12 MB in all, more than the kernel keeps for a reader that takes nothing. */
const ROWS = 20_000;
const FILL = 500;
const MOST_GROWTH = 1.5;

/**
 * The size of the file and its write-ahead log in bytes after rounds that each overwrite a fifth of the rows, beside this many streams that
 * no client reads.
 */
async function sizeBeside(t: TestContext, readers: number): Promise<number> {
  const directory = await testDirectory(t);
  const server = await serverOn(t, {
    ...{ MONGODB_URI: '', DATA_DIR: directory, RATE_LIMIT: 'off', STREAM_LIMIT: 'off', STALL_TIMEOUT: '1 h' },
    STREAM_GRACE: '0 s',
  });
  const rows = catalogue(ROWS).map(({ document }) => document);
  await server.insert(rows.map((row) => ({ ...row, fill: 'x'.repeat(FILL) })));
  const port = Number(new URL(server.url).port);
  const sockets = await Promise.all(
    Array.from({ length: readers }, async () => {
      const socket = connect(port, '127.0.0.1').pause();
      t.after(() => socket.destroy());
      await once(socket, 'connect');
      socket.write(request('/items/stream'));
      return socket;
    }),
  );
  const stalled = async () => (await samples(server.url)).get('sluice_streams_stalled');
  while ((await stalled()) !== readers) await pause(100);
  for (let round = 0; round < ROUNDS; round++) {
    const fifth = rows.filter((_, n) => n % 5 === round % 5);
    const fill = String(round % 10).repeat(FILL);
    await server.store.items.insert(
      fifth.map((row) => BSON.serialize({ ...row, fill })),
      'replace',
    );
  }
  assert.equal(await stalled(), readers, 'all readers still wait');
  for (const socket of sockets) socket.destroy();
  const sizes = [FILE, `${FILE}-wal`].map(async (name) => (await stat(join(directory, name))).size);
  const [file = 0, log = 0] = await Promise.all(sizes);
  await server.close();
  return file + log;
}

test(`${READERS} streams that no client reads do not make the file grow while ${ROUNDS} rounds overwrite a fifth of it`, async (t) => {
  const without = await sizeBeside(t, 0);
  const beside = await sizeBeside(t, READERS);
  t.diagnostic(`${without} bytes alone, ${beside} beside ${READERS} streams`);
  assert.ok(beside <= MOST_GROWTH * without);
});
