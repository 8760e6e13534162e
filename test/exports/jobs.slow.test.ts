import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ExportRequest } from '../../src/exports/job.ts';
import { Jobs } from '../../src/exports/jobs.ts';
import { BSON } from '../../src/store/values/bson.ts';
import type { Records } from '../../src/store/records.ts';
import { twoHandles, Worker } from '../support/exports/export-worker.ts';

const REQUEST: ExportRequest = {
  resource: 'items',
  query: 'sort=id_asc',
  format: 'ndjson',
  compression: 'none',
};
const BY_ID = { sort: '_id', direction: 1 } as const;
const STRANGERS = 100;
const LOOK_MS = 5_000;

/** Counts the rows that are read from it. */
function counting(records: Records): Records & { rows: number } {
  const counted = {
    ...records,
    rows: 0,
    read: async (...call: Parameters<Records['read']>) => {
      const batch = await records.read(...call);
      counted.rows += batch.rows;
      return batch;
    },
  };
  return counted;
}

for (const name of ['sqlite', 'mongodb'] as const) {
  test(`${name}: a store has a unique id, the same for all processes, and no export is made by asking`, async (t) => {
    const [one, other] = (await twoHandles(t, name)) ?? [];
    const [stranger] = (await twoHandles(t, name)) ?? [];
    if (!one || !other || !stranger) return;
    const [first, second, third] = [one, other, stranger].map(
      ({ exports }) => new Jobs({ records: exports, perClient: () => 1, now: () => new Date() }),
    );
    assert.ok(first && second && third);
    assert.deepEqual(await first.listOf('ada', t.signal), []);
    assert.equal((await one.exports.read(BY_ID, {}, { rows: 1, bytes: 1 }, t.signal)).rows, 0);
    for (const jobs of [first, third]) await jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
    const ids = await Promise.all([first, second, third].map((jobs) => jobs.storeId()));
    assert.match(ids[0] ?? '', /^[0-9a-f]{32}$/);
    assert.equal(ids[0], ids[1]);
    assert.notEqual(ids[0], ids[2]);
    assert.equal((await second.all(t.signal)).length, 1);
  });

  test(`${name}: the cost of a client's orders and lists does not grow with the exports of others`, async (t) => {
    const handles = await twoHandles(t, name);
    if (!handles) return;
    const records = counting(handles[0].exports);
    const jobs = new Jobs({ records, perClient: () => 3, now: () => new Date() });
    const strangers = Array.from({ length: STRANGERS }, (_, n) =>
      jobs.create(`stranger${n}`, () => Promise.resolve(REQUEST), t.signal),
    );
    await Promise.all(strangers);
    records.rows = 0;
    const orders = Array.from({ length: 9 }, () =>
      jobs.create('ada', () => Promise.resolve(REQUEST), t.signal),
    );
    const taken = (await Promise.allSettled(orders)).filter(({ status }) => status === 'fulfilled');
    assert.equal(taken.length, 3, 'the limit holds for simultaneous orders');
    assert.equal((await jobs.listOf('ada', t.signal)).length, 3);
    assert.ok(records.rows < STRANGERS / 2, `${records.rows} rows were read`);
  });

  test(`${name}: a client's exports come newest first, and no others`, async (t) => {
    const handles = await twoHandles(t, name);
    if (!handles) return;
    let time = Date.UTC(2026, 0, 1);
    const jobs = new Jobs({
      records: handles[0].exports,
      perClient: () => 9,
      now: () => new Date((time += 1000)),
    });
    const made: string[] = [];
    for (let n = 0; n < 5; n++) {
      made.unshift((await jobs.create('ada', () => Promise.resolve(REQUEST), t.signal)).id);
      await jobs.create(n % 2 ? 'ad' : 'adam', () => Promise.resolve(REQUEST), t.signal);
    }
    assert.deepEqual(
      (await jobs.listOf('ada', t.signal)).map(({ id }) => id),
      made,
    );
  });

  test(`${name}: a look removes the records of earlier releases, which are no exports, and the files that no record needs`, async (t) => {
    const handles = await twoHandles(t, name);
    if (!handles) return;
    const { exports, store } = handles[0];
    const { files } = store;
    const worker = new Worker(handles[0]);
    await worker.beat(LOOK_MS);
    const { id } = await worker.jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
    const old = { state: 'marker', request: {}, createdAt: new Date() };
    const outdated = [`live:${id}`, 'f'.repeat(32)];
    for (const _id of outdated) await exports.change(_id, () => BSON.serialize({ _id, ...old }));
    for (const file of [`${'f'.repeat(32)}.aaaa`, `${id}.aaaa`]) await (await files.create(file)).finish();
    assert.equal(await worker.jobs.get(outdated[1] ?? '', t.signal), null);
    await worker.beat(LOOK_MS);
    for (const _id of outdated) assert.equal((await exports.change(_id, () => 'keep')).before, null);
    assert.deepEqual(await files.names(), []);
    assert.equal(await worker.work(id), null);
    await worker.beat(LOOK_MS);
    assert.equal((await files.names(id)).length, 1, 'a file that a record names stays');
    await worker.close();
  });
}

test('looks are rarer where there are more records, as far as one a minute', async (t) => {
  const handles = await twoHandles(t, 'sqlite');
  if (!handles) return;
  const { exports } = handles[0];
  const jobs = new Jobs({ records: exports, perClient: () => 3_000, now: () => new Date() });
  const first = await jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
  const { before } = await exports.change(first.id, () => 'keep');
  const copies = (from: number, to: number) =>
    Promise.all(
      Array.from({ length: to - from }, (_, n) => {
        const _id = String(from + n).padStart(32, '0');
        const copy = { ...BSON.deserialize(before ?? new Uint8Array()), _id };
        return exports.change(_id, () => BSON.serialize(copy));
      }),
    );
  await copies(0, 1_999);
  const worker = new Worker(handles[0]);
  await worker.paused(10_000);
  await copies(1_999, 12_999);
  await worker.beat(10_000, 60_000);
  await worker.close();
});
