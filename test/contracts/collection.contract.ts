import assert from 'node:assert/strict';
import { BSON, BSONRegExp, EJSON, MaxKey, MinKey, type Document } from 'bson';
import { chooseIndex, isRefusal, type PlanRequest, type Choice } from '../../src/resources/query/planner.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { BSON_RANK, rankOf as rankOfType } from '../../src/store/values/bson-types.ts';
import { compareKeys } from '../../src/store/values/keys.ts';
import { compareValues, keyOfPlace } from '../../src/store/values/order.ts';
import { readRow } from '../../src/store/turns/read-row.ts';
import type { Slots } from '../../src/store/turns/slots.ts';
import type { Index } from '../../src/store/indexes.ts';
import type { Collection, Equality, Plan } from '../../src/store/store.ts';
import type { ValueRange } from '../../src/store/plan.ts';
import { NEVER, PLENTY, readRows, takeRows, walk } from '../support/store/reading.ts';
import {
  PATHS,
  below,
  oneOf,
  randomCollection,
  randomFrom,
  valueAt,
} from '../support/store/random-collection.ts';
import type { Random, RandomCollection } from '../support/store/random-collection.ts';
import type { ContractTest } from '../support/tests-with.ts';

/** A random collection in a store. `check` looks at what the store did with the database, after all reads. */
export interface OpenedCollection {
  readonly collection: Collection;
  readonly slots: Slots;
  readonly check: () => Promise<void>;
}

/** Puts a random collection into the store of a test. */
export type PutRandom = (random: RandomCollection) => Promise<OpenedCollection>;

/** The seeds of random collections: the first, and how many. */
export interface Seeds {
  readonly first: number;
  readonly count: number;
}

/** Other collections show more than other queries of one. */
const QUERIES = process.env.LONG ? 14 : 6;
/** The most queries until one is allowed. */
const MOST_QUERIES = 50;
/** Collections per test, so that a failure names its seed. */
const GROUP = 10;

/** Random collections with random queries: each allowed query is a full sort of the rows, however it is walked. */
export function collectionContract(test: ContractTest<PutRandom>, { first: begin, count }: Seeds): void {
  for (let first = begin; first < begin + count; first += GROUP)
    test(`each allowed query on a random collection returns what a full sort returns (seeds from ${first})`, async (put) => {
      for (let seed = first; seed < first + GROUP; seed++) {
        const random = randomFrom(seed);
        const made = randomCollection(random);
        await checkCollection(await put(made), made, random, `seed ${seed}`);
      }
    });
}

async function checkCollection(
  { collection, slots, check }: OpenedCollection,
  { documents }: RandomCollection,
  random: Random,
  at: string,
): Promise<void> {
  let allowed = 0;
  for (let n = 0; n < QUERIES || (allowed === 0 && n < MOST_QUERIES); n++) {
    const { indexes } = await collection.describe(NEVER);
    const query = randomQuery(random, documents, indexes);
    const choice = chooseIndex(query.asked, indexes);
    if (isRefusal(choice)) continue;
    allowed++;
    const label = `${at}, query ${n}: ${EJSON.stringify({ ...query, by: choice.index.name })}`;
    await checkQuery(collection, documents, random, planOf(choice, query), label);
  }
  assert.ok(allowed > 0, `${at}: no query was allowed`);
  await checkValues(collection, documents, random, at);
  for (const { _id } of documents.filter((_, n) => n % 7 === 0)) {
    const id = makeBookmark({ _id: _id as unknown });
    const batch = await readRow(collection, id, NEVER);
    assert.deepEqual(batch && takeRows(batch).map(idOf), [idOf(id)], `${at}: the row of ${idOf(id)}`);
  }
  assert.equal(slots.taken, 0, `${at}: every slot was released`);
  await check();
}

interface Query {
  readonly asked: PlanRequest;
  readonly equals: readonly Equality[];
  readonly range?: ValueRange;
}

/** A query in the order of a random index, or of random fields. */
function randomQuery(random: Random, documents: readonly Document[], indexes: readonly Index[]): Query {
  const key = oneOf(random, indexes).keys.map(({ path }) => path);
  const paths = random() < 0.85 ? key : [...PATHS, '_id'].sort(() => random() - 0.5);
  const count = Math.min(below(random, paths.length + 1), paths.length);
  const given = oneOf(random, documents);
  const values = paths.slice(0, count).map((path): Equality => {
    const value = valueAt(random() < 0.8 ? given : oneOf(random, documents), path);
    return { path, value: isAskable(value) ? value : 'nowhere' };
  });
  const equals = [...values].sort(() => random() - 0.5);
  const direction: 1 | -1 = random() < 0.5 ? 1 : -1;
  const sort = random() < 0.9 ? { path: paths[count] ?? '_id', direction } : undefined;
  const range = random() < 0.4 && sort ? randomRange(random, documents, sort.path) : undefined;
  return {
    asked: {
      equals: equals.map(({ path }) => path),
      ranges: range && sort ? [sort.path] : [],
      ...(sort && { sort }),
    },
    equals,
    ...(range && { range }),
  };
}

/** The type that stands for each rank, where a query can name values of that type. */
const BRACKETS: Readonly<Record<number, number>> = {
  [BSON_RANK.number]: 0x10,
  [BSON_RANK.string]: 0x02,
  [BSON_RANK.document]: 0x03,
  [BSON_RANK.binary]: 0x05,
  [BSON_RANK.objectId]: 0x07,
  [BSON_RANK.boolean]: 0x08,
  [BSON_RANK.date]: 0x09,
  [BSON_RANK.timestamp]: 0x11,
};

function randomRange(random: Random, documents: readonly Document[], path: string): ValueRange | undefined {
  const values = documents.map((row) => valueAt(row, path)).filter((value) => !isNaNValue(value));
  const rank = rankOf(oneOf(random, values));
  const bracket = BRACKETS[rank];
  const bounds = values.filter((value) => rankOf(value) === rank);
  if (bracket === undefined || bounds.length === 0) return undefined;
  const bound = () => ({ value: oneOf(random, bounds), isInclusive: random() < 0.5 });
  return { bracket, ...(random() < 0.6 && { low: bound() }), ...(random() < 0.6 && { high: bound() }) };
}

/** The place of a value's type in BSON's order. */
function rankOf(value: unknown): number {
  return rankOfType(BSON.serialize({ value })[4] ?? 0);
}

function isNaNValue(value: unknown): boolean {
  return rankOf(value) === BSON_RANK.number && String(value) === 'NaN';
}

function isAskable(value: unknown): boolean {
  return !(value instanceof MinKey || value instanceof MaxKey || value instanceof BSONRegExp);
}

function planOf({ index, equals, sort, direction }: Choice, query: Query): Plan {
  const named = equals.flatMap((path) => query.equals.filter((one) => one.path === path));
  const others = query.equals.filter(({ path }) => !equals.includes(path));
  return {
    index,
    equals: [...named, ...others],
    sort,
    direction,
    ...(query.range && { range: query.range }),
  };
}

async function checkQuery(
  collection: Collection,
  documents: readonly Document[],
  random: Random,
  plan: Plan,
  label: string,
): Promise<void> {
  const whole = expected(documents, plan);
  for (const direction of [plan.direction, -plan.direction as 1 | -1]) {
    const turned = { ...plan, direction };
    const wanted = direction === plan.direction ? whole : [...whole].reverse();
    assert.deepEqual(await pages(collection, turned, random), wanted, `${label}, direction ${direction}`);
    const skip = below(random, wanted.length + 3);
    const { rows } = await readRows(collection, turned, { skip }, { rows: 7, bytes: PLENTY });
    assert.deepEqual(rows.map(idOf), wanted.slice(skip, skip + 7), `${label}, skip ${skip}`);
  }
  const count = await collection.count(plan, 'exact', NEVER);
  assert.deepEqual(count, { rows: whole.length, is: 'exact' }, `${label}, count`);
  const next = plan.index?.keys[plan.equals?.length ?? 0];
  if (next?.path === '_id' && !plan.range) await checkParts(collection, plan, documents, random, label);
}

/** A plan in parts, by ids that the store chose or that random rows have, is the whole plan. */
async function checkParts(
  collection: Collection,
  plan: Plan,
  documents: readonly Document[],
  random: Random,
  label: string,
): Promise<void> {
  const ascending = { ...plan, direction: 1 as const };
  const ids = documents.map(({ _id }) => _id as unknown).sort(compareValues);
  const chosen = await collection.split(ascending, 1 + below(random, 4), NEVER);
  const own = [below(random, ids.length), below(random, ids.length)].sort((a, b) => a - b);
  for (const cuts of [chosen, [...new Set(own)].map((n) => makeBookmark({ _id: ids[n] }))]) {
    const rows: string[] = [];
    for (const [n, to] of [...cuts, undefined].entries()) {
      const from = cuts[n - 1];
      rows.push(
        ...(await pages(
          collection,
          { ...ascending, ids: { ...(from && { from }), ...(to && { to }) } },
          random,
        )),
      );
    }
    assert.deepEqual(rows, expected(documents, ascending), `${label}, ${cuts.length + 1} parts`);
  }
}

/** The ids of a plan's rows, read in pages of random sizes. */
async function pages(collection: Collection, plan: Plan, random: Random): Promise<string[]> {
  return (await walk(collection, plan, () => oneOf(random, [1, 2, 3, 7, 1_000]))).map(idOf);
}

/** The distinct values behind a prefix, and whether rows have such values. */
async function checkValues(
  collection: Collection,
  documents: readonly Document[],
  random: Random,
  at: string,
): Promise<void> {
  const usable = (await collection.describe(NEVER)).indexes.filter(({ refused }) => refused === undefined);
  const index = oneOf(random, usable);
  const count = below(random, index.keys.length);
  const row = oneOf(random, documents);
  const equals = index.keys
    .slice(0, count)
    .map(({ path }): Equality => ({ path, value: valueAt(row, path) }));
  if (!equals.every(({ value }) => isAskable(value))) return;
  const path = index.keys[count]?.path ?? '_id';
  const rows = documents.filter((document) => hasValues(document, equals));
  const values = rows.map((document) => valueAt(document, path)).sort(compareValues);
  const distinct = values.filter(
    (value, n) => isAskable(value) && (n === 0 || compareValues(value, values[n - 1]) !== 0),
  );
  const found: unknown[] = [];
  let omitted = 0;
  const onOmitted = () => {
    omitted++;
  };
  let after = await collection.nextValue(index, equals, { onOmitted }, NEVER);
  for (; after; after = await collection.nextValue(index, equals, { after, onOmitted }, NEVER)) {
    assert.ok(found.length < distinct.length, `${at}: ${path} has more values than rows have`);
    found.push(BSON.deserialize(after, EXACT)[path]);
  }
  assert.equal(found.length, distinct.length, `${at}: values of ${path} by ${index.name}`);
  const unnamed = new Set(values.filter((value) => !isAskable(value)).map(rankOf));
  assert.equal(omitted, unnamed.size, `${at}: types of ${path} that are left out`);
  for (const [n, value] of distinct.entries())
    assert.equal(compareValues(found[n], value), 0, `${at}: value ${n} of ${path}`);
  for (const [rank, bracket] of Object.entries(BRACKETS)) {
    const lowest = values.find((value) => rankOf(value) === Number(rank) && !isNaNValue(value));
    const first = await collection.nextValue(index, equals, { range: { bracket } }, NEVER);
    const is = `${at}: ${path} has type ${bracket}`;
    if (lowest === undefined || !first) assert.equal(first, lowest ?? null, is);
    else assert.equal(compareValues(BSON.deserialize(first, EXACT)[path], lowest), 0, is);
  }
  const range = randomRange(random, documents, path);
  if (!range) return;
  const first = await collection.nextValue(index, equals, { range }, NEVER);
  const isWanted = values.some((value) => isWithin(value, range));
  assert.equal(first !== null, isWanted, `${at}: ${path} has a value in ${JSON.stringify(range)}`);
  if (first) assert.ok(isWithin(BSON.deserialize(first, EXACT)[path], range), at);
}

const EXACT = { promoteValues: false, promoteBuffers: false, bsonRegExp: true } as const;

/** The ids of the rows that a plan stands for, by a filter and a full sort. */
function expected(documents: readonly Document[], { equals = [], sort, direction, range }: Plan): string[] {
  return documents
    .filter((row) => hasValues(row, equals))
    .filter((row) => !range || isWithin(valueAt(row, sort), range))
    .map(({ _id, ...row }) => ({
      id: idOf(BSON.serialize({ _id: _id as unknown })),
      place: keyOfPlace(makeBookmark({ ...(sort !== '_id' && { [sort]: valueAt(row, sort) }), _id })),
    }))
    .sort((a, b) => compareKeys(a.place, b.place) * direction)
    .map(({ id }) => id);
}

function hasValues(row: Document, equals: readonly Equality[]): boolean {
  return equals.every(({ path, value }) => compareValues(valueAt(row, path), value) === 0);
}

function isWithin(value: unknown, { bracket, low, high }: ValueRange): boolean {
  if (BRACKETS[rankOf(value)] !== bracket || isNaNValue(value)) return false;
  const toLow = low ? compareValues(value, low.value) : 1;
  const toHigh = high ? compareValues(value, high.value) : -1;
  return (
    (toLow > 0 || (toLow === 0 && low?.isInclusive === true)) &&
    (toHigh < 0 || (toHigh === 0 && high?.isInclusive === true))
  );
}

function idOf(row: Uint8Array): string {
  return EJSON.stringify(BSON.deserialize(row, EXACT)._id, { relaxed: false });
}
