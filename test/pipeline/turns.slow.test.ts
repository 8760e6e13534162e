import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chain, chainAfter, FIRST_BATCH } from '../../src/pipeline/chain.ts';
import { pump } from '../../src/pipeline/pump.ts';
import type { Sink } from '../../src/pipeline/sink.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { aroundItems } from '../support/store/with-items.ts';
import { noneOf } from '../../src/store/batch.ts';
import { ReadTurns } from '../../src/store/turns/read-turns.ts';
import { streamReader } from '../../src/store/turns/readers.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { RawClient, request } from '../support/engine/raw.ts';
import { NEVER } from '../support/store/reading.ts';
import { serverOn, type StoreName } from '../support/process/server.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { insertDocuments } from '../support/store/items.ts';

const ROWS = 2_000;
const PLAN = { sort: '_id', direction: 1 } as const;

function rows() {
  const fill = 'x'.repeat(1_000);
  return Array.from({ length: ROWS }, (_, n) => ({ _id: n, category: 'c', price: 1, fill }));
}

test('a client that is slow gives back the memory that others wait for, and still gets every row', async (t) => {
  const { store, slots } = await testSqlite(t);
  const few = rows().slice(0, 500);
  await insertDocuments(store.items, few);
  const turns = new ReadTurns();
  const streams = streamReader(store.items, turns, { retryMs: 60_000 });
  const run = async (takes: () => Promise<void>, parkAfterMs: number) => {
    const ids: number[] = [];
    let text = '';
    let parks = 0;
    const sink: Sink = {
      chunkBytes: 16_384,
      signal: NEVER,
      flush: () => undefined,
      end: () => undefined,
      fail: () => undefined,
      write: (chunk) => {
        text += Buffer.from(chunk).toString();
        return takes();
      },
    };
    const first = await streams.begin(PLAN, {}, FIRST_BATCH, NEVER);
    await pump(
      {
        first: chain(streams, PLAN, first, Infinity, NEVER),
        again: { plan: PLAN, after: (row) => chainAfter(streams, PLAN, row, Infinity, NEVER) },
        observer: { rows: () => undefined, parked: () => (parks++, () => undefined) },
        parkAfterMs,
      },
      createTranscoder(slots).encoder('lines', undefined),
      { head: '' },
      sink,
    );
    for (const line of text.trimEnd().split('\n')) ids.push((JSON.parse(line) as { id: number }).id);
    assert.deepEqual(
      ids,
      few.map(({ _id }) => _id),
    );
    return parks;
  };
  const slowly = () => new Promise<void>((resolve) => setTimeout(resolve, 10)); // far less than a stall
  assert.equal(await run(() => new Promise(setImmediate), 60_000), 0);
  const batch = await store.items.read(PLAN, {}, FIRST_BATCH, NEVER);
  const others = [16, 8].map((mib) => turns.hold({ ...noneOf(batch), slot: slots.take(mib << 20) }));
  const waits = turns.take({ ...FIRST_BATCH, patient: true }, NEVER, () => Promise.resolve());
  assert.ok((await run(slowly, 300)) > 3);
  others.forEach((other) => other.release());
  await waits;
});

for (const name of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`${name}: pages and streams that begin do not wait behind those that wait, and neither does the end`, async (t) => {
    const uri = name === 'mongodb' ? await testMongo(t) : '';
    if (uri === null) return;
    let asked = 0;
    let left = 0;
    const settings = { MONGODB_URI: uri, STREAM_LIMIT: 'off', RATE_LIMIT: 'off', STREAM_GRACE: '10 ms' };
    const server = await serverOn(t, settings, {
      // The streams' next reads hang until they are aborted.
      tapStore: (store) =>
        aroundItems(store, (items) => ({
          read: (plan, from, size, signal) => {
            if (size.patient !== true) return items.read(plan, from, size, signal);
            asked++;
            return new Promise((_, reject) =>
              signal.addEventListener('abort', () => {
                left++;
                reject(signal.reason as Error);
              }),
            );
          },
        })),
    });
    await server.insert(rows());
    const begin = async () => {
      const client = await RawClient.connect(t, Number(new URL(server.url).port));
      await client.send(request('/items/stream')).until((text) => text.includes('"id":249'));
      return client;
    };
    const clients = await Promise.all(Array.from({ length: 200 }, begin));
    while (asked <= 100) await new Promise(setImmediate); // a client has its rows before the server reads on
    assert.ok(asked < 150, `${asked} streams of 200 were let read on`);
    const { status } = await server.get('/items?limit=100&sort=price_asc');
    assert.equal(status, 200);
    const later = await begin();
    const waiting = clients.at(-1);
    waiting?.socket.destroy();
    later.socket.destroy();
    await server.close();
    assert.equal(left, asked, 'no read is left behind');
    assert.equal(server.slots.taken, 0);
  });
