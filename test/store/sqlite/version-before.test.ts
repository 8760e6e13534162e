import assert from 'node:assert/strict';
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { temporaryFolder } from '../../support/directory.ts';
import { ROOT } from '../../support/papers/documents.ts';
import { serverOn } from '../../support/process/server.ts';

/**
 * The store that version 0.3.0 (commit 8cf37e9f) made: `import` of three rows into orders with an index of status, a start, a POST
 * of a user, a stop in order. And what it answered: the cursors of a page, of a page by status, and of changes.
 */
const FILE = gunzipSync(readFileSync(join(ROOT, 'test/support/store/v0.3.0.db.gz')));
const MARK = '{"id":"014b99ea0e0132d274821b3a3074eb35","stops":2}';
const USER = '01a22506-6b0c-769f-a4dd-7ebd0f20dd6b';
const BY_ID = 'EQQ41Vvw4AN41nKh1c5WWST5ujdsZg4AAAAQX2lkAAIAAAAAu898Ug';
const BY_STATUS = 'EQRopUng4AN41nKh1c5WWST5ujdsZh4AAAACc3RhdHVzAAQAAABuZXcAEF9pZAADAAAAALKTXCw';
const CHANGES = 'EwQ41Vvw4AN41nKh1c5WWST5ujdsZgAVAFEnwoQcVBUGCAAAAAMAAAAAAAAAAIcemF8';

const ROWS = [
  { id: 1, status: 'new', total: 10.5 },
  { id: 2, status: 'paid', total: 20 },
  { id: 3, status: 'new', total: 30 },
];

test('a store of 0.3.0 opens with its rows, users and cursors, and a copy of before can be put back', async (t) => {
  const DATA_DIR = await temporaryFolder(t);
  const file = join(DATA_DIR, 'sluice.db');
  writeFileSync(file, FILE, { mode: 0o600 });
  writeFileSync(join(DATA_DIR, 'sluice.mark'), MARK);
  chmodSync(DATA_DIR, 0o700);
  const settings = { MONGODB_URI: '', DATA_DIR };
  const start = async () => {
    const server = await serverOn(t, settings);
    const json = async (path: string) => (await (await server.get(path)).json()) as { data: unknown };
    return { server, json, rows: async (path: string) => (await json(path)).data };
  };

  const first = await start();
  assert.deepEqual(await first.rows('/orders'), ROWS);
  assert.deepEqual(await first.rows(`/orders?limit=2&cursor=${BY_ID}`), [ROWS[2]]);
  assert.deepEqual(await first.rows(`/orders?limit=2&sort=status_asc&cursor=${BY_STATUS}`), [ROWS[1]]);
  assert.equal(((await first.json(`/api/users/${USER}`)) as unknown as { name: string }).name, 'Ann');
  const changes = await first.server.get(`/orders/changes?since=${CHANGES}`);
  assert.equal(changes.status, 200);
  assert.match(await changes.text(), /"upToDate":true/);
  await first.server.close();
  // 0.3.0 reads this name in the file, and refuses it: the promise to go back is that of the copy alone.
  assert.ok(readFileSync(file).includes('sluice 4') && FILE.includes('sluice 3'));

  for (const name of ['sluice.db-wal', 'sluice.db-shm', 'sluice.mark'])
    rmSync(join(DATA_DIR, name), { force: true });
  writeFileSync(file, FILE);
  const back = await start();
  assert.deepEqual(await back.rows('/orders'), ROWS);
  assert.deepEqual(await back.rows(`/orders?limit=2&cursor=${BY_ID}`), [ROWS[2]]);
  assert.equal((await back.server.get(`/orders/changes?since=${CHANGES}`)).status, 410, 'a new history');
});
