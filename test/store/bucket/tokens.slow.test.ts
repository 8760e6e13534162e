import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { BucketFiles } from '../../../src/store/bucket/files.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { exportRows } from '../../support/exports/exports.ts';
import { openDirectory, Worker } from '../../support/exports/export-worker.ts';
import { keysAt, newFiles, placeOf } from '../../support/store/bucket/bucket.ts';
import { faultyGateway, IS, type FaultyGateway } from '../../support/store/bucket/gateway.ts';
import { Seaweed } from '../../support/store/bucket/seaweed.ts';
import { tokenOf, withoutTokens } from '../../support/store/bucket/session.ts';
import { insertDocuments } from '../../support/store/items.ts';
import { withOverrides } from '../../support/store/with-overrides.ts';
import { shared } from '../../support/tests-with.ts';

const seaweed = shared((t) => Seaweed.start(t));
/** Three parts, and a part of a fourth one. */
const LARGE = randomBytes(3 * 8 * 1024 * 1024 + 100_000);
/** As AWS answers. The token itself is in the answer. */
const EXPIRED = { status: 400, code: 'ExpiredToken', more: '<Token-0>of-yesterday</Token-0>' };

interface Temporary {
  readonly files: BucketFiles;
  readonly gateway: FaultyGateway;
  /** The number of requests that were refused since their token had ended. */
  readonly refused: { count: number };
  readonly renew: () => void;
  readonly keys: ReturnType<typeof keysAt>;
}

/**
 * Files of a server with temporary credentials, whose first session token ends when the second part of a file comes.
 * `atRefusal`: called at each refusal, with their number.
 */
async function temporary(
  t: TestContext,
  retryMs: number,
  atRefusal: (count: number, renew: () => void) => void = () => undefined,
): Promise<Temporary | null> {
  const store = await seaweed(t);
  if (!store) return null;
  const gateway = await faultyGateway(t, store.endpoint);
  gateway.forward = withoutTokens(store.endpoint);
  const FILES = await newFiles(store, gateway.endpoint);
  const file = join(await temporaryFolder(t), 'token');
  writeFileSync(file, 'of-yesterday\n');
  const renew = (): void => {
    writeFileSync(file, 'of-today\n');
  };
  const refused = { count: 0 };
  gateway.decide = (seen) => {
    const isRefused = tokenOf(seen) === 'of-yesterday' && (refused.count > 0 || IS.part(seen, 2));
    if (!isRefused) return null;
    atRefusal(++refused.count, renew);
    return EXPIRED;
  };
  const place = placeOf({ FILES, S3_SESSION_TOKEN_FILE: file });
  const files = new BucketFiles(place, { folder: () => Promise.resolve('id0'), retryMs });
  t.after(() => {
    files.close();
  });
  const direct = FILES.replace(encodeURIComponent(gateway.endpoint), encodeURIComponent(store.endpoint));
  return { files, gateway, refused, renew, keys: keysAt(t, direct) };
}

test('a session token ends in the middle of an upload, and is replaced a little later: the upload goes on', async (t) => {
  const opened = await temporary(t, 60_000, (count, renew) => {
    if (count === 4) renew();
  });
  if (!opened) return;
  const { files, gateway, refused, keys } = opened;
  const writer = await files.create('a.b');
  for (let at = 0; at < LARGE.length; at += 500_000) await writer.write(LARGE.subarray(at, at + 500_000));
  await writer.finish();
  await writer.close();
  assert.ok(refused.count >= 4);
  assert.equal(gateway.seen.filter(IS.begin).length, 1, 'what was sent is not sent again');
  assert.equal(gateway.seen.filter((seen) => IS.part(seen, 1)).length, 1);
  assert.deepEqual(
    gateway.seen.filter(IS.complete).map((seen) => tokenOf(seen)),
    ['of-today'],
  );
  const link = files.link('a.b', { seconds: 60, headers: {} });
  assert.ok(Buffer.from(await (await fetch(link)).arrayBuffer()).equals(LARGE));
  assert.equal((await fetch(link.replace('of-today', 'of-yesterday'))).status, 400);
  assert.deepEqual(
    (await keys()).map((key) => key.replace(/^.*\//, '')),
    ['a.b'],
  );
});

test('a session token that ends in the middle of an upload and is not replaced fails the export with its reason', async (t) => {
  const opened = await temporary(t, 200);
  if (!opened) return;
  const { files, gateway, renew, keys } = opened;
  const handle = await openDirectory(await temporaryFolder(t));
  t.after(() => handle.store.close());
  await insertDocuments(handle.store.items, exportRows(60_000)); // two parts of a bucket
  let time = Date.now();
  const store = withOverrides(handle.store, { files });
  const worker = new Worker({ ...handle, store }, { now: () => new Date(time) });
  t.after(() => worker.close());
  await worker.paused(5_000);
  const request = {
    resource: 'items',
    query: 'sort=price_desc',
    format: 'ndjson',
    compression: 'none',
  } as const;
  const order = () => worker.jobs.create('ada', () => Promise.resolve(request), t.signal);
  const { id } = await order();
  for (let attempts = 0; attempts < 5; attempts++) {
    await worker.work(id);
    time += 60_000;
  }
  const failed = await worker.jobs.get(id, t.signal);
  assert.ok(failed?.state === 'failed', JSON.stringify(failed));
  assert.equal(failed.failure.code, 'store-unavailable');
  assert.match(failed.failure.detail, /ExpiredToken/);
  assert.doesNotMatch(failed.failure.detail, /of-yesterday/);
  assert.equal(gateway.seen.filter(IS.begin).length, 1, 'later attempts do not get as far');
  assert.equal((await keys()).length, 1, 'nobody may remove it yet');
  renew();
  await worker.beat(5_000);
  assert.deepEqual(await keys(), [], 'a look with the new token removes what was begun');
  const again = await order();
  assert.equal(await worker.work(again.id), null);
  const done = await worker.jobs.get(again.id, t.signal);
  assert.equal((await worker.textOf(done)).split('\n').length, 60_001);
});
