import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AppError } from '../../../../src/base/errors.ts';
import type { ChangeFeed, FeedPlace } from '../../../../src/store/change-feed.ts';
import { BSON, Binary, Decimal128, Double, Int32 } from '../../../../src/store/values/bson.ts';
import { SEED } from '../../../support/seed.ts';
import { feedOf } from '../../../support/store/changes.ts';
import { failingStore, testMongoStore } from '../../../support/store/mongo/mongo.ts';
import { below, oneOf, randomFrom, type Random } from '../../../support/store/random-collection.ts';
import { NEVER } from '../../../support/store/reading.ts';

const TOKENS = process.env.LONG ? 20_000 : 300;
/** A place is this byte, the number of bytes that say the types of numbers, these, and the token: 82, a time, and the rest. */
const OF_TOKEN = 2;
const REST = 9;

/** Codes of errors with and without a name that say nothing of a token, some of them of the lines beside those that do. */
const OTHER_CODES = [
  ...[1, 2, 8, 22, 40, 96, 211, 246, 318, 15_001, 31_001, 40_645, 50_797, 50_809, 50_820, 50_871, 51_173],
  ...[5_000_001, 6_189_506, 7_182_505],
];

const IDS: readonly unknown[] = [
  ...['text', new Int32(0), new Double(1.5), new Double(-0), Decimal128.fromString('7.10'), true, null],
  ...[new Binary(Buffer.from('abc')), new Date(0), { a: new Int32(1), b: 'y' }, 'long'.repeat(50)],
];

async function outcomeOf(feed: ChangeFeed, token: Uint8Array): Promise<string> {
  try {
    await feed.read({ token }, { most: 10, waitMs: 0 }, undefined, NEVER);
    return 'read';
  } catch (error) {
    return (error as AppError).code;
  }
}

/** Places behind each row, with tokens and not times. */
async function placesBehind(feed: ChangeFeed, from: FeedPlace): Promise<readonly Uint8Array[]> {
  const places: Uint8Array[] = [];
  for (let place = from; places.length < IDS.length;) {
    place = (await feed.read(place, { most: 1, waitMs: 0 }, undefined, NEVER)).next;
    if (place.token[0] === OF_TOKEN) places.push(place.token);
  }
  return places;
}

/** Other bytes behind the time of a token. */
function forged(random: Random, given: Uint8Array, other: Uint8Array): Uint8Array {
  const bits = given[1] ?? 0;
  const at = 2 + bits + REST;
  const bytes = Buffer.from(given);
  const place = at + below(random, bytes.length - at);
  const some = (most: number) =>
    Buffer.from(Array.from({ length: 1 + below(random, most) }, () => below(random, 256)));
  const ways: readonly (() => Uint8Array)[] = [
    () => bytes.subarray(0, place),
    () => Buffer.concat([bytes, some(6)]),
    () => Buffer.concat([bytes.subarray(0, at), some(60)]),
    () => Buffer.concat([bytes.subarray(0, place), some(1), bytes.subarray(place)]),
    () => Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + 1)]),
    () => Buffer.concat([bytes.subarray(0, place), other.subarray(place)]),
    () => bytes.map((byte, n) => (n === place ? byte ^ (1 << below(random, 8)) : byte)),
    () => bytes.map((byte, n) => (n >= at && random() < 0.1 ? below(random, 256) : byte)),
    () => {
      const types = some(6);
      return Buffer.concat([Uint8Array.of(OF_TOKEN, types.length), types, bytes.subarray(2 + bits)]);
    },
  ];
  return oneOf(random, ways)();
}

test(`${TOKENS} forged tokens are read, refused or expired, whatever MongoDB says of them`, async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return;
  const feed = feedOf(opened.store.items);
  const begin = await feed.now(NEVER);
  for (const _id of IDS)
    await opened.store.items.insert([BSON.serialize({ _id, category: 'a', price: 1 })], 'fail');
  const places = await placesBehind(feed, begin);
  const random = randomFrom(SEED);
  const outcomes = new Map<string, number>();
  for (let n = 0; n < TOKENS; n++) {
    const token = forged(random, oneOf(random, places), oneOf(random, places));
    const outcome = await outcomeOf(feed, token);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    const at = `seed ${SEED}, token ${n}: ${Buffer.from(token).toString('hex')}`;
    assert.match(outcome, /^(read|invalid-cursor|changes-expired)$/, at);
  }
  t.diagnostic(JSON.stringify(Object.fromEntries(outcomes)));
  assert.ok((outcomes.get('invalid-cursor') ?? 0) > TOKENS / 4);
});

test('a code of MongoDB that says nothing of the token is a store that is unavailable', async (t) => {
  const opened = await failingStore(t);
  if (!opened) return;
  const { store, fail } = opened;
  const feed = feedOf(store.items);
  const time = await feed.now(NEVER);
  for (const _id of IDS) await store.items.insert([BSON.serialize({ _id, category: 'a', price: 1 })], 'fail');
  const [ofToken = assert.fail()] = await placesBehind(feed, time);
  for (const errorCode of OTHER_CODES) {
    await fail(['aggregate'], 'alwaysOn', { errorCode });
    for (const token of [ofToken, time.token])
      assert.equal(await outcomeOf(feed, token), 'store-unavailable', `${errorCode} at ${token[0]}`);
    await fail(['aggregate'], 'off');
  }
  for (const [errorCode, code] of [
    [50_811, 'invalid-cursor'],
    [7_182_501, 'invalid-cursor'],
    [286, 'changes-expired'],
  ] as const) {
    await fail(['aggregate'], 'alwaysOn', { errorCode });
    assert.equal(await outcomeOf(feed, ofToken), code);
    await fail(['aggregate'], 'off');
  }
  assert.equal(await outcomeOf(feed, ofToken), 'read');
});
