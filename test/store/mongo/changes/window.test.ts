import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeBookmark, type Bookmark } from '../../../../src/store/bookmark.ts';
import type { ChangeEvent } from '../../../../src/store/mongo/changes/change-events.ts';
import { LatestEvents } from '../../../../src/store/mongo/changes/latest.ts';
import { FeedPage } from '../../../../src/store/mongo/changes/page.ts';
import { isBefore, placeOfTime } from '../../../../src/store/mongo/changes/place.ts';
import { Window } from '../../../../src/store/mongo/changes/window.ts';
import { below, randomFrom } from '../../../support/store/random-collection.ts';
import { SEED } from '../../../support/seed.ts';

const placeAt = (tick: number) => placeOfTime(BigInt(tick) << 32n);

function eventOf(tick: number, id: number | null): ChangeEvent {
  const key = id === null ? null : (new Uint8Array(makeBookmark({ _id: id })) as Bookmark);
  return { place: placeAt(tick), time: BigInt(tick) << 32n, collections: ['orders'], key };
}

test('of each row the latest event is kept, in order, however events are added and the oldest dropped', () => {
  const random = randomFrom(SEED);
  const latest = new LatestEvents();
  let all: ChangeEvent[] = [];
  for (let tick = 1; tick < 6_000; tick++) {
    const event = eventOf(tick, random() < 0.001 ? null : below(random, tick < 3_000 ? 30 : 900));
    latest.add(event);
    all = [...all.filter(({ key }) => !key || !event.key || !sameKey(key, event.key)), event];
    assert.equal(latest.count, all.length);
    if (tick % 100 !== 0) continue;
    const from = placeAt(below(random, tick + 10));
    assert.deepEqual(
      latest.behind(from),
      all.filter(({ place }) => isBefore(from, place)),
    );
    if (random() > 0.1) continue;
    const dropped = all.splice(0, Math.ceil(all.length / 2));
    assert.deepEqual(latest.dropOldest(), dropped.at(-1)?.place ?? null);
  }
  assert.equal(
    latest.bytes,
    all.reduce((sum, { key, place }) => sum + (key?.length ?? 0) + place.hex.length, 0),
  );
});

function sameKey(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

test('rows that change again and again do not push a slow reader out of the window', () => {
  const window = new Window('orders');
  window.begin(placeAt(0));
  for (let tick = 1; tick <= 25_000; tick++) window.add([eventOf(tick, tick % 100)]);
  const page = new FeedPage(1_000, placeAt(1), undefined);
  assert.ok(window.fill(page, placeAt(25_001)));
  assert.equal(page.count, 100, 'each row once');
  assert.equal(page.isWhole, true);
  for (let tick = 25_001; tick <= 50_000; tick++) window.add([eventOf(tick, tick)]);
  const late = new FeedPage(1_000, placeAt(1), undefined);
  assert.equal(window.fill(late, placeAt(50_001)), false, 'too many other rows came');
});

test('the events that are kept do not keep the buffer in which they came', () => {
  const latest = new LatestEvents();
  const reply = Buffer.alloc(64 * 1024);
  const inReply = <T extends Uint8Array>(bytes: T): T => {
    reply.set(bytes);
    return reply.subarray(0, bytes.length) as Uint8Array as T;
  };
  const event = eventOf(1, 7);
  assert.ok(event.key);
  const typeBits = Uint8Array.of(1, 2);
  latest.add({ ...event, key: inReply(event.key), before: inReply(event.key) });
  latest.add({ ...event, place: { ...event.place, typeBits: inReply(typeBits) } });
  const kept = latest.behind(placeAt(0));
  assert.deepEqual(
    kept.map(({ key, before, place }) =>
      [key, before, place.typeBits].map((bytes) => bytes?.buffer.byteLength),
    ),
    [
      [event.key.length, event.key.length, undefined],
      [event.key.length, undefined, typeBits.length],
    ],
  );
});

test('a page has as many rows as its reader wants of those that changed behind its place', () => {
  const window = new Window('orders');
  window.begin(placeAt(1));
  window.add([eventOf(2, 2), eventOf(3, 3)]);
  const pageOf = (from: number, most: number, behind: number) => {
    const page = new FeedPage(most, placeAt(from), 1n << 32n);
    return window.fill(page, placeAt(behind)) && [page.count, page.isWhole];
  };
  assert.deepEqual(pageOf(1, 10, 4), [2, true]);
  assert.deepEqual(pageOf(1, 1, 4), [1, false]);
  assert.deepEqual(pageOf(2, 10, 4), [1, true]);
  window.add([eventOf(5, 5)]);
  assert.deepEqual(pageOf(1, 10, 5), [3, true]);
  window.begin(placeAt(6));
  assert.equal(pageOf(1, 10, 6), false);
});
