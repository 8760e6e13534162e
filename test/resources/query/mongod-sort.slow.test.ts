import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { MongoServerError, type Db } from 'mongodb';
import {
  Decimal128,
  Double,
  Int32,
  Long,
  ObjectId,
  Timestamp,
  UUID,
  type Document,
} from '../../../src/store/values/bson.ts';
import { compareValues } from '../../../src/store/values/order.ts';
import { jsonOf, linesOf, problemOf, type Page } from '../../support/answers.ts';
import { serverOn, type TestServer } from '../../support/process/server.ts';
import { SEED } from '../../support/seed.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import {
  PATHS,
  below,
  oneOf,
  randomCollection,
  randomFrom,
  valueAt,
  type Random,
  type RandomCollection,
} from '../../support/store/random-collection.ts';

const [ROUNDS, COLLECTIONS, QUERIES] = process.env.LONG === '1' ? [100, 20, 60] : [1, 10, 20];

/** An index that mongod refuses: a value is twice in it, it is there, its options differ, or it is an odd one of _id. */
const IMPOSSIBLE = [2, 11000, 85, 86, 67, 197];

type Direction = 1 | -1;

/** A query in both languages: the parameters of a request, and what the driver is asked, one filter after another. */
interface Query {
  readonly parameters: readonly [name: string, value: string][];
  readonly filters: readonly Document[];
  readonly sort: readonly (readonly [path: string, direction: Direction])[];
}

async function make(db: Db, name: string, { documents, indexes, kind }: RandomCollection): Promise<void> {
  await db.createCollection(name, {
    ...(kind === 'clustered' && { clusteredIndex: { key: { _id: 1 }, unique: true } }),
    ...(kind === 'capped' && { capped: true, size: 64 * 1024 * 1024 }),
  });
  // The driver's insertMany replaces an _id of null.
  await db.command({ insert: name, documents: documents.map((document, row) => ({ ...document, row })) });
  for (const { key, options } of indexes)
    await db
      .collection(name)
      .createIndexes([{ key: Object.fromEntries(key), ...options }])
      .catch((error: unknown) => {
        if (!(error instanceof MongoServerError) || !IMPOSSIBLE.includes(error.code as number)) throw error;
      });
}

/** The text that asks for this value and no other kind; undefined where no text does. */
function spelling(value: unknown): string | undefined {
  if (value === null) return 'null:';
  if (value instanceof Timestamp) return undefined; // it is a Long for JavaScript, and no text asks for it
  if (typeof value === 'string') return `str:${value}`;
  if (typeof value === 'boolean') return `bool:${value}`;
  if (value instanceof Date) return `date:${value.toISOString()}`;
  if (value instanceof Int32 || value instanceof Long) return `int:${value.toString()}`;
  if (value instanceof Double) return Number.isFinite(value.value) ? `num:${value.value}` : undefined;
  if (value instanceof Decimal128)
    return /NaN|Infinity/.test(value.toString()) ? undefined : `dec:${value.toString()}`;
  if (value instanceof ObjectId) return `oid:${value.toHexString()}`;
  return value instanceof UUID ? `uuid:${value.toHexString()}` : undefined;
}

function nameOf(path: string): string {
  return path === '_id' ? 'id' : path;
}

/** A value that rows have at a path, and the text that asks for it. */
interface Equal {
  readonly path: string;
  readonly value: unknown;
  readonly text: string;
}

/** Several values of one path, of which no two are one place, in any order. */
function severalOf(random: Random, first: Equal, documents: readonly Document[]): readonly Equal[] {
  const { path } = first;
  const values = [first];
  for (let tries = below(random, 6); tries > 0; tries--) {
    const value = valueAt(oneOf(random, documents), path);
    const text = spelling(value);
    if (text !== undefined && values.every((one) => compareValues(one.value, value) !== 0))
      values.push({ path, value, text });
  }
  return values.toSorted(() => random() - 0.5);
}

/** Filters on the first fields of an index, or on any fields, a range and an order of the next one. */
function randomQuery(random: Random, { documents, indexes }: RandomCollection): Query {
  const given = oneOf(random, documents);
  const own = oneOf(random, indexes).key.map(([path]) => path);
  const paths = random() < 0.85 ? [...new Set([...own, '_id'])] : [...PATHS].sort(() => random() - 0.5);
  const valueOf = (path: string) => valueAt(random() < 0.8 ? given : oneOf(random, documents), path);
  const count = below(random, paths.length);
  const equals = paths.slice(0, count).flatMap((path) => {
    const value = valueOf(path);
    const text = spelling(value);
    return text === undefined ? [] : [{ path, value, text }];
  });
  const direction: Direction = random() < 0.5 ? 1 : -1;
  const order = paths[count] ?? '_id';
  const bound = spelling(valueOf(order)) === undefined || random() < 0.5 ? null : valueOf(order);
  const operator = oneOf(random, ['gte', 'gt', 'lte', 'lt']);
  const text = bound === null ? undefined : spelling(bound);
  const among = random() < 0.4 ? equals[below(random, equals.length)] : undefined;
  const values = among ? severalOf(random, among, documents) : [];
  const texts = JSON.stringify(values.map((one) => one.text));
  const others = equals.filter((one) => one !== among);
  const head = among ? `${nameOf(among.path)}.in,` : '';
  const filterOf = (all: readonly Equal[]): Document => ({
    $and: [
      {},
      ...all.map(({ path, value }) => ({ [path]: { $eq: value } })),
      ...(text === undefined ? [] : [{ [order]: { [`$${operator}`]: bound } }]),
    ],
  });
  return {
    parameters: [
      ...others.map(({ path, text }) => [nameOf(path), text] as [string, string]),
      ...(among ? [[`${nameOf(among.path)}.in`, texts] as [string, string]] : []),
      ...(text === undefined ? [] : [[`${nameOf(order)}.${operator}`, text] as [string, string]]),
      ['sort', `${head}${nameOf(order)}_${direction === 1 ? 'asc' : 'desc'}`],
    ],
    filters: among ? values.map((one) => filterOf([...others, one])) : [filterOf(others)],
    sort: [...new Set([order, '_id'])].map((path) => [path, direction]),
  };
}

/** The numbers of the rows that mongod finds, in its order. It chooses the plan itself. */
async function sorted(db: Db, name: string, { filters, sort }: Query): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const filter of filters) {
    const rows = await db
      .collection(name)
      .find(filter, { projection: { _id: 0, row: 1 } })
      .sort(Object.fromEntries(sort))
      .toArray();
    found.push(...rows.map(({ row }) => row as unknown));
  }
  return found;
}

/**
 * How much of a query the server answers: nothing where no index does, its stream alone where a cursor cannot hold a value of a
 * row, else its pages, too. Whatever it answers must be mongod's rows.
 */
async function answerOf(
  server: TestServer,
  random: Random,
  path: string,
  query: Query,
  rows: readonly unknown[],
): Promise<'refused' | 'streamed' | 'paged'> {
  const limit = oneOf(random, [1, 2, 3, 7, 1_000]);
  const parameters = new URLSearchParams([...query.parameters, ['fields', 'row']]);
  const at = `${path}?${parameters.toString().slice(0, 400)}`;
  const streamed = await server.get(`${path}/stream?${parameters.toString()}`);
  if (streamed.status !== 200) {
    const { code, detail } = await problemOf(streamed);
    assert.equal(code, 'not-indexed', `${at}: ${detail}`);
    return 'refused';
  }
  assert.deepEqual((await linesOf(streamed)).map(numberOf), rows, `the stream of ${at}`);
  parameters.set('limit', String(limit));
  parameters.set('count', 'exact');
  const found: unknown[] = [];
  for (;;) {
    const answer = await server.get(`${path}?${parameters.toString()}`);
    if (answer.status === 422) {
      assert.equal((await problemOf(answer)).code, 'sort-value-too-long', at);
      assert.deepEqual(found, rows.slice(0, found.length), `pages of ${limit} of ${at}`);
      return 'streamed';
    }
    const { data, page } = (await jsonOf(answer)) as Page<{ row: unknown }>;
    assert.equal(page.total, rows.length, `the count of ${at}`);
    found.push(...data.map(({ row }) => row));
    if (!page.hasMore) break;
    parameters.set('cursor', page.nextCursor ?? assert.fail(at));
  }
  assert.deepEqual(found, rows, `pages of ${limit} of ${at}`);
  return 'paged';
}

function numberOf(line: string): unknown {
  return (JSON.parse(line) as { row: unknown }).row;
}

async function checkRound(t: TestContext, seed: number): Promise<void> {
  const uri = await testMongo(t);
  if (uri === null) return;
  const db = testClient(t, uri).db();
  const random = randomFrom(seed);
  const made = Array.from({ length: COLLECTIONS }, () => randomCollection(random));
  for (const [n, collection] of made.entries()) await make(db, `rows${n}`, collection);
  // Without the comparison with /openapi.json, which compiles schemas for each resource.
  const server = await serverOn(
    t,
    { MONGODB_URI: uri, EXPOSE: made.map((_, n) => `rows${n}`).join(',') },
    { tap: (serve) => serve },
  );
  const answers: string[] = [];
  for (const [n, collection] of made.entries())
    for (let queries = 0; queries < QUERIES; queries++) {
      const query = randomQuery(random, collection);
      const rows = await sorted(db, `rows${n}`, query);
      answers.push(await answerOf(server, random, `/rows${n}`, query, rows));
    }
  const paged = answers.filter((answer) => answer === 'paged').length;
  assert.ok(paged > answers.length / 5, `${paged} of ${answers.length} queries were paged`);
}

for (let round = 0; round < ROUNDS; round++)
  test(`queries by any index answer what mongod finds and sorts (seed ${SEED + round})`, (t) =>
    checkRound(t, SEED + round));
