import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { storedHeaders } from '../../../src/base/edition/file-headers.ts';
import { BucketObjects } from '../../../src/store/bucket/objects.ts';
import type { ObjectStore } from '../../../src/store/objects.ts';
import { newFiles, placeOf } from '../../support/store/bucket/bucket.ts';
import { faultyGateway, type FaultyGateway } from '../../support/store/bucket/gateway.ts';
import { Seaweed } from '../../support/store/bucket/seaweed.ts';
import { isProblem } from '../../support/store/changes.ts';
import { shared } from '../../support/tests-with.ts';

const seaweed = shared((t) => Seaweed.start(t));
const BYTES = randomBytes(100_000);

interface Behind {
  readonly objects: ObjectStore;
  readonly gateway: FaultyGateway;
}

/** Objects in a new place behind a gateway that makes faults. null: there is no store here. */
async function behind(t: TestContext, retryMs: number): Promise<Behind | null> {
  const store = await seaweed(t);
  if (!store) return null;
  const gateway = await faultyGateway(t, store.endpoint);
  const place = placeOf({ FILES: await newFiles(store, gateway.endpoint) });
  const how = { folder: 'editions/', headersOf: storedHeaders, retryMs, idleMs: 5_000 };
  const objects = new BucketObjects(place, how);
  t.after(() => {
    objects.close();
  });
  return { objects, gateway };
}

test('the bucket is told how it serves each file', async (t) => {
  const opened = await behind(t, 30_000);
  if (!opened) return;
  const { objects, gateway } = opened;
  const headersOf = async (path: string): Promise<readonly unknown[]> => {
    await objects.put(path, BYTES);
    const { headers } = gateway.seen.at(-1) ?? {};
    return [headers?.['content-type'], headers?.['cache-control'], headers?.['content-encoding']];
  };
  const year = 'max-age=31536000, immutable';
  const name = 'a'.repeat(64);
  assert.deepEqual(await headersOf(`o/chunks/${name}.ndjson.gz`), ['application/gzip', year, undefined]);
  assert.deepEqual(await headersOf(`o/chunks/${name}.ndjson`), ['application/x-ndjson', year, undefined]);
  assert.deepEqual(await headersOf(`o/chunks/${name}.index.json`), ['application/json', year, undefined]);
  assert.deepEqual(await headersOf(`o/edition/${name}.json`), ['application/json', year, undefined]);
  assert.deepEqual(await headersOf('o/edition.json'), [
    ...['application/json', 'max-age=5, stale-while-revalidate=30'],
    undefined,
  ]);
  assert.deepEqual(await headersOf('o/_delta_log/0.json'), ['application/json', 'no-cache', undefined]);
});

test('a put whose answer is lost, and a store that knows no conditions, tell who has stored an object', async (t) => {
  const opened = await behind(t, 30_000);
  if (!opened) return;
  const { objects, gateway } = opened;
  const losing = () => {
    let isFirst = true;
    gateway.decide = ({ method }) => {
      const isLost = method === 'PUT' && isFirst;
      if (method === 'PUT') isFirst = false;
      return isLost ? 'lose' : null;
    };
  };
  losing();
  assert.equal(await objects.put('o/a', BYTES, { isNew: true }), true, 'it is ours');
  losing();
  assert.equal(await objects.put('o/a', Buffer.from('other'), { isNew: true }), false);
  gateway.decide = ({ headers }) =>
    headers['if-none-match'] === undefined ? null : { status: 501, code: 'NotImplemented' };
  assert.equal(await objects.put('o/a', Buffer.from('other'), { isNew: true }), false);
  assert.equal(await objects.put('o/b', BYTES, { isNew: true }), true);
  assert.ok(Buffer.from((await objects.get('o/a')) ?? []).equals(BYTES));
});

test('faults on the way pass, or are those of a store that is away or full', async (t) => {
  const opened = await behind(t, 30_000);
  const once = await behind(t, 0);
  if (!opened || !once) return;
  const { objects, gateway } = opened;
  for (const fault of ['refuse', 'cut', 'cut-answer', { status: 503, code: 'SlowDown' }] as const) {
    let isFirst = true;
    gateway.decide = () => {
      const isNow = isFirst;
      isFirst = false;
      return isNow ? fault : null;
    };
    assert.equal(await objects.put('o/a', BYTES), true);
    isFirst = true;
    assert.ok(Buffer.from((await objects.get('o/a')) ?? []).equals(BYTES), JSON.stringify(fault));
  }
  once.gateway.decide = () => 'refuse';
  await assert.rejects(once.objects.put('o/a', BYTES), isProblem('store-unavailable'));
  await assert.rejects(once.objects.get('o/a'), isProblem('store-unavailable'));
  await assert.rejects(once.objects.ping(), isProblem('store-unavailable'));
  once.gateway.decide = () => ({ status: 403, code: 'QuotaExceeded' });
  await assert.rejects(once.objects.put('o/a', BYTES), isProblem('insufficient-storage'));
});
