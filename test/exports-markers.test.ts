import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancel, isFinal, type ExportRequest } from '../src/exports/job.ts';
import { Jobs } from '../src/exports/jobs.ts';
import { BSON } from '../src/store/bson.ts';
import type { RecordStore } from '../src/store/store.ts';
import { twoHandles } from './support/export-worker.ts';

const REQUEST: ExportRequest = {
  ...{ resource: 'items', query: 'sort=id_asc', format: 'ndjson', compression: 'none' },
};
const BY_ID = { sort: '_id', direction: 1 } as const;
const STRANGERS = 100;

/** Counts the rows that are read from it. */
function counting(records: RecordStore): RecordStore & { rows: number } {
  const counted = {
    rows: 0,
    read: async (...call: Parameters<RecordStore['read']>) => {
      const batch = await records.read(...call);
      counted.rows += batch.rows;
      return batch;
    },
    get: async (...call: Parameters<RecordStore['get']>) => {
      counted.rows++;
      return records.get(...call);
    },
    confirm: (...call: Parameters<RecordStore['confirm']>) => records.confirm(...call),
    change: (...call: Parameters<RecordStore['change']>) => records.change(...call),
  };
  return counted;
}

for (const name of ['lmdb', 'mongodb'] as const) {
  test(`${name}: a store has a unique id, the same for all processes, that is written on the first request for it`, async (t) => {
    const [one, other] = (await twoHandles(t, name)) ?? [];
    const [stranger] = (await twoHandles(t, name)) ?? [];
    if (!one || !other || !stranger) return;
    const [first, second, third] = [one, other, stranger].map(
      ({ store }) => new Jobs({ records: store.exports, perClient: 1, now: () => new Date() }),
    );
    assert.ok(first && second && third);
    assert.deepEqual(await first.listOf('ada', t.signal), []);
    assert.equal((await one.store.exports.read(BY_ID, {}, { rows: 1, bytes: 1 }, t.signal)).rows, 0);
    const ids = await Promise.all([first, second, third].map((jobs) => jobs.storeId()));
    assert.equal(ids[0], ids[1]);
    assert.notEqual(ids[0], ids[2]);
    assert.equal(await second.storeId(), ids[0]);
    assert.deepEqual(
      await first.all(t.signal),
      { jobs: [], markers: [], outdated: [] },
      'it is not an export',
    );
  });

  test(`${name}: the cost of a client's orders and lists does not grow with the exports of others`, async (t) => {
    const handles = await twoHandles(t, name);
    if (!handles) return;
    const records = counting(handles[0].store.exports);
    let now = new Date();
    const jobs = new Jobs({ records, perClient: 3, now: () => now });
    const never = () => new AbortController().signal;
    const strangers = Array.from({ length: STRANGERS }, (_, n) =>
      jobs.create(`stranger${n}`, REQUEST, never()),
    );
    const final = { finishedAt: now, expiresAt: new Date(now.getTime() + 3_600_000) };
    const made = await Promise.all(strangers);
    await Promise.all(
      made.map(({ id }) => jobs.change(id, (job) => (isFinal(job) ? job : cancel(job, final)))),
    );
    records.rows = 0;
    const orders = Array.from({ length: 9 }, () => jobs.create('ada', REQUEST, t.signal));
    const taken = (await Promise.allSettled(orders)).filter(({ status }) => status === 'fulfilled');
    assert.equal(taken.length, 3, 'the limit holds for simultaneous orders');
    assert.equal((await jobs.listOf('ada', t.signal)).length, 3);
    assert.equal((await jobs.live(t.signal)).length, 3);
    assert.deepEqual(await jobs.ended(t.signal), []);
    assert.ok(records.rows < 100, `${records.rows} rows were read`);
    now = final.expiresAt;
    assert.equal((await jobs.ended(t.signal)).length, STRANGERS);
  });

  test(`${name}: a kill between two writes, or records of a version without markers, lose no export and no room for one`, async (t) => {
    const handles = await twoHandles(t, name);
    if (!handles) return;
    const { exports } = handles[0].store;
    let time = Date.now();
    const now = () => new Date(time);
    const jobs = new Jobs({ records: exports, perClient: 2, now });
    const [first, second] = [
      await jobs.create('ada', REQUEST, t.signal),
      await jobs.create('ada', REQUEST, t.signal),
    ];
    // The first export has markers and no record, the second a record and no markers.
    await exports.change(first.id, () => null);
    for (const { name: marker } of (await jobs.all(t.signal)).markers)
      if (marker.endsWith(second.id)) await exports.change(marker, () => null);
    assert.deepEqual(await jobs.listOf('ada', t.signal), []);
    await jobs.repair(await jobs.all(t.signal)); // as the exporter does when it reads all records
    assert.deepEqual(
      (await jobs.listOf('ada', t.signal)).map(({ id }) => id),
      [second.id],
    );
    await assert.rejects(
      jobs.create('ada', REQUEST, t.signal),
      { code: 'too-many-exports' },
      'its export may be about to be written',
    );
    time += 61_000;
    const third = await jobs.create('ada', REQUEST, t.signal);
    assert.deepEqual(
      new Set((await jobs.listOf('ada', t.signal)).map(({ id }) => id)),
      new Set([second.id, third.id]),
    );
    assert.equal((await jobs.live(t.signal)).length, 2);
    const { markers } = await jobs.all(t.signal);
    assert.equal(
      markers.filter(({ id }) => id === first.id).length,
      0,
      'the leftovers of the kill are removed',
    );
  });

  test(`${name}: a marker has the fields that the collection's validator requires, and is never shown as an export`, async (t) => {
    const handles = await twoHandles(t, name);
    if (!handles) return;
    const { exports } = handles[0].store;
    const jobs = new Jobs({ records: exports, perClient: 2, now: () => new Date() });
    const { id } = await jobs.create('ada', REQUEST, t.signal);
    const { markers } = await jobs.all(t.signal);
    assert.equal(markers.length, 2);
    for (const { name: marker } of markers) {
      assert.equal(await jobs.get(marker, t.signal), null);
      const { after } = await exports.change(marker, () => 'keep');
      assert.ok(after);
      const fields = BSON.deserialize(after);
      assert.deepEqual([typeof fields.state, typeof fields.request], ['string', 'object']);
      assert.ok(fields.createdAt instanceof Date);
    }
    await jobs.change(id, () => null);
    assert.deepEqual(await jobs.all(t.signal), { jobs: [], markers: [], outdated: [] });
  });
}
