import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON, Int32, type Document } from 'bson';
import { jsonOf, linesOf, pagesOf, type Page } from '../support/answers.ts';
import { keyedServer, type KeyGiven, type Rows } from '../support/access/keyed.ts';
import { below, oneOf, randomFrom, type Random } from '../support/store/random-collection.ts';
import { SEED } from '../support/seed.ts';
import type { StoreName } from '../support/process/server.ts';
import { forgedToken } from '../support/resources/tokens.ts';

const [QUERIES, FORGED] = process.env.LONG === '1' ? [5_000, 50_000] : [120, 200];

const TENANTS = ['acme', 'bolt', 'coil', 'dyne'];
const REGIONS = [1, 2, 3];
const FIELDS = ['tenant', 'region', 'status', 'total'] as const;

/** Every combination of fields that a key or a query can name. */
const INDEXES = [
  ['tenant'],
  ['tenant', 'status'],
  ['tenant', 'total'],
  ['tenant', 'status', 'total'],
  ['region'],
  ['region', 'total'],
  ['tenant', 'region'],
  ['region', 'tenant', 'total'],
  ['region', 'tenant', 'status'],
  ['status'],
  ['status', 'total'],
  ['total'],
];

function randomRows(random: Random): Document[] {
  return Array.from({ length: 300 }, (_, n) => ({
    _id: `r${String(n).padStart(3, '0')}`,
    tenant: oneOf(random, TENANTS),
    region: new Int32(oneOf(random, REGIONS)),
    status: oneOf(random, ['new', 'old']),
    total: new Int32(below(random, 40)),
    deep: { hidden: `H${n}`, shown: n },
  }));
}

/** Keys with all kinds of rights to rows and fields. */
function randomKeys(random: Random): (KeyGiven & { where: { orders: Record<string, string | number> } })[] {
  return Array.from({ length: 12 }, (_, n) => {
    const tenant = random() < 0.75 ? { tenant: oneOf(random, [...TENANTS, 'missing']) } : {};
    const region = random() < 0.4 || !('tenant' in tenant) ? { region: oneOf(random, REGIONS) } : {};
    const hide = ['deep.hidden', 'status', 'total', 'tenant', 'deep'].filter(() => random() < 0.2);
    return {
      name: `k${n}`,
      where: { orders: { ...tenant, ...region } },
      ...(hide.length > 0 && { hide: { orders: hide } }),
    };
  });
}

function shownRow(row: Document, hidden: readonly string[]): Document {
  const { _id, deep, ...rest } = row as { _id: string; deep: Record<string, unknown> };
  const plain = Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, value instanceof Int32 ? value.value : value]),
  );
  const inner = Object.fromEntries(Object.entries(deep).filter(([name]) => !hidden.includes(`deep.${name}`)));
  const all: Document = { id: _id, ...plain, deep: inner };
  return Object.fromEntries(Object.entries(all).filter(([name]) => !hidden.includes(name)));
}

/** A query, and the rows that it has for a key: a full scan and sort of what the key may see. */
function randomQuery(random: Random, rows: readonly Document[], key: ReturnType<typeof randomKeys>[number]) {
  const where: Record<string, unknown> = key.where.orders;
  const hidden = (key.hide as { orders: string[] } | undefined)?.orders ?? [];
  const equals = FIELDS.filter(() => random() < 0.25).map(
    (path) => [path, plainOf(oneOf(random, rows)[path])] as const,
  );
  const sort = oneOf(random, ['id', 'total', 'status', 'tenant', undefined]);
  const direction = random() < 0.5 ? 'asc' : 'desc';
  const low = sort === 'total' && random() < 0.4 ? below(random, 40) : undefined;
  const text = new URLSearchParams([
    ...equals.map(([path, value]): [string, string] => [path, String(value)]),
    ...(sort === undefined ? [] : [['sort', `${sort}_${direction}`] as [string, string]]),
    ...(low === undefined ? [] : [['total.gte', String(low)] as [string, string]]),
  ]);
  const named = [...equals.map(([path]) => path as string), ...(sort === undefined ? [] : [sort])];
  const has = (row: Document, path: string, value: unknown) => plainOf(row[path]) === value;
  const found = rows
    .filter((row) => Object.entries(where).every(([path, value]) => has(row, path, value)))
    .filter((row) => equals.every(([path, value]) => has(row, path, value)))
    .filter((row) => low === undefined || (plainOf(row.total) as number) >= low);
  const by = (row: Document): [unknown, string] => [
    sort === 'id' || sort === undefined ? 0 : plainOf(row[sort]),
    String(row._id),
  ];
  const sorted = found.toSorted(
    (a, b) => compare(by(a), by(b)) * (direction === 'desc' && sort !== undefined ? -1 : 1),
  );
  return {
    text: String(text),
    isHidden: named.some((path) => hidden.includes(path)),
    rows: sorted.map((row) => shownRow(row, hidden)),
  };
}

function plainOf(value: unknown): unknown {
  return value instanceof Int32 ? value.value : value;
}

function compare([a, id]: [unknown, string], [b, other]: [unknown, string]): number {
  if (a !== b) return (a as string) < (b as string) ? -1 : 1;
  return id < other ? -1 : 1;
}

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[]) {
  test(`${store}: the answers to a random key equal a reference of its rows (seed ${SEED})`, async (t) => {
    const random = randomFrom(SEED);
    const rows = randomRows(random);
    const keys = randomKeys(random);
    const resource: Rows = { name: 'orders', rows, indexes: INDEXES };
    const server = await keyedServer(t, store, keys, [resource], { RATE_LIMIT: 'off' });
    if (!server) return;
    let answered = 0;
    let nonempty = 0;
    for (let n = 0; n < QUERIES; n++) {
      const key = oneOf(random, keys);
      const query = randomQuery(random, rows, key);
      const at = `${JSON.stringify(key)} ?${query.text}`;
      const path = `/orders?${query.text}&limit=${1 + below(random, 60)}&count=exact`;
      const asKey = { get: (asked: string): Promise<Response> => server.as(key.name, asked) };
      const first = await asKey.get(path);
      const text = await first.text();
      if (query.isHidden) {
        assert.equal(first.status, 400, at);
        continue;
      }
      if (first.status === 400) {
        assert.match(text, /not-indexed/, at);
        continue;
      }
      const got: unknown[] = [];
      for await (const { data, page } of pagesOf(asKey, path)) {
        got.push(...data);
        assert.deepEqual([page.total, page.totalIs], [query.rows.length, 'exact'], at);
      }
      assert.deepEqual(got, query.rows, at);
      if (n % 3 === 0) {
        const lines = await linesOf(asKey.get(`/orders/stream?${query.text}`));
        const streamed = lines.map((line) => JSON.parse(line) as unknown);
        assert.deepEqual(streamed, query.rows, at);
      }
      answered++;
      if (got.length > 0) nonempty++;
    }
    assert.ok(
      answered > QUERIES / 10 && nonempty > QUERIES / 20,
      `${answered} and ${nonempty} queries were answered`,
    );
  });

  test(`${store}: a forged cursor or partition stays inside the rows of the key (seed ${SEED})`, async (t) => {
    const random = randomFrom(SEED + 1);
    const rows = randomRows(random);
    const keys = [{ name: 'acme', where: { orders: { tenant: 'acme' } } }, { name: 'all' }];
    const server = await keyedServer(t, store, keys, [{ name: 'orders', rows, indexes: INDEXES }], {
      RATE_LIMIT: 'off',
    });
    if (!server) return;
    const forms = ['sort=total_asc', 'sort=total_desc', 'status=new', 'status=new&sort=total_asc', ''];
    const cursors = await Promise.all(
      forms.map(async (form) => {
        const page = (await jsonOf(server.as('acme', `/orders?limit=3&${form}`))) as Page;
        return { form, token: Buffer.from(page.page.nextCursor ?? '', 'base64url') };
      }),
    );
    const { partitions } = (await jsonOf(server.as('acme', '/orders/partitions?n=3'))) as {
      partitions: { url: string }[];
    };
    const { searchParams } = new URL(partitions[1]?.url ?? '', server.url);
    const part = Buffer.from(searchParams.get('part') ?? '', 'base64url');
    let accepted = 0;
    let refused = 0;
    for (let n = 0; n < FORGED; n++) {
      const { form, token } = oneOf(random, cursors);
      const isPart = n % 4 === 0;
      const forged = isPart ? forgedPart(random, part) : forgedCursor(random, token);
      const path = isPart
        ? `/orders/stream?part=${forged}`
        : oneOf(random, [
            `/orders?limit=50&${form}&cursor=${forged}`,
            `/orders/stream?${form}&cursor=${forged}`,
          ]);
      const answer = await server.as('acme', path);
      const text = await answer.text();
      assert.ok(
        answer.status === 200 || (answer.status >= 400 && answer.status < 500),
        `${answer.status} ${path} ${text}`,
      );
      assert.doesNotMatch(text, /bolt|coil|dyne/, path);
      if (answer.status === 200) accepted++;
      else refused++;
    }
    assert.ok(accepted > FORGED / 10 && refused > 0, `${accepted} accepted, ${refused} refused`);
  });
}

const VALUES: readonly ((random: Random) => unknown)[] = [
  (random) => new Int32(below(random, 40)),
  (random) => `r${String(below(random, 300)).padStart(3, '0')}`,
  () => '',
  () => 'zzz',
  () => -Infinity,
  () => Infinity,
  () => null,
  () => new Date(0),
  () => ({ $gt: '' }),
  () => ({ tenant: 'bolt' }),
  () => ['bolt'],
  () => true,
];

function value(random: Random): unknown {
  return oneOf(random, VALUES)(random);
}

/** A cursor with a sound checksum whose place is any other one, or with any byte changed. */
function forgedCursor(random: Random, token: Buffer): string {
  const content = token.subarray(1, -4);
  const at = content.length - bookmarkLength(content);
  const [sort] = Object.keys(BSON.deserialize(content.subarray(at)));
  const names =
    random() < 0.9
      ? sort === '_id'
        ? ['_id']
        : [sort ?? '', '_id']
      : oneOf(random, [['tenant', '_id'], ['_id', 'tenant'], ['total'], []]);
  const place = BSON.serialize(Object.fromEntries(names.map((name) => [name, value(random)])));
  const forged = Buffer.concat([content.subarray(0, at), place]);
  if (random() < 0.2) forged[below(random, forged.length)] = below(random, 256);
  return forgedToken(random() < 0.95 ? (token[0] ?? 0) : below(random, 21), forged);
}

function forgedPart(random: Random, token: Buffer): string {
  const content = token.subarray(1, -4);
  const at = content.length - bookmarkLength(content);
  const bounds = BSON.serialize({
    ...(random() < 0.8 && { from: value(random) }),
    ...(random() < 0.8 && { to: value(random) }),
    ...(random() < 0.05 && { tenant: 'bolt' }),
  });
  return forgedToken(token[0] ?? 0, Buffer.concat([content.subarray(0, at), bounds]));
}

/** The length of the BSON document at the end. */
function bookmarkLength(content: Buffer): number {
  for (let at = content.length - 5; at >= 0; at--)
    if (content.readInt32LE(at) === content.length - at) return content.length - at;
  throw new TypeError('a token without a document');
}
