import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc, { anyCharacter } from '../support/fast-check.ts';
import type { Reply } from '../../src/engine/edge.ts';
import { encodeCursor } from '../../src/resources/token/cursor.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { BSON, Int32, type Document } from '../../src/store/values/bson.ts';
import type { Plan } from '../../src/store/store.ts';
import { requestOf } from '../support/engine/engines.ts';
import { appOn, sinkTo } from '../support/process/app.ts';
import { itemsOf } from '../support/resources/items-resource.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';

const RUNS = process.env.LONG ? 1_000_000 : 10_000;
const CATEGORIES = ['red', '$ne', '__proto__', 'größe'];
const ITEMS = Array.from({ length: 40 }, (_, n) => ({
  _id: new Int32(n),
  category: CATEGORIES[n % CATEGORIES.length] ?? '',
  price: (n * 7) % 11,
}));

/** The codes with which this server may refuse a request. A 500 or any other code is a fault. */
const REFUSALS = [
  'conflicting-parameters',
  'cursor-mismatch',
  'duplicate-parameter',
  'invalid-cursor',
  'invalid-parameter',
  'invalid-url',
  'not-found',
  'offset-too-deep',
  'unknown-parameter',
  'uri-too-long',
];

const plans: fc.Arbitrary<Plan> = fc.record({
  sort: fc.constantFrom('_id', 'price'),
  direction: fc.constantFrom(1 as const, -1 as const),
});
const cursors = fc
  .tuple(plans, fc.nat(50), fc.constantFrom('items', 'users'))
  .map(([plan, n, collection]) =>
    encodeCursor(
      collection,
      plan,
      makeBookmark({ ...(plan.sort === 'price' && { price: new Int32(n % 11) }), _id: new Int32(n) }),
    ),
  );
const names = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.constantFrom('limit', 'offset', 'page', 'cursor', 'category', 'sort', 'count'),
  },
  { weight: 10, arbitrary: fc.constantFrom('min_price', 'max_price', 'fields', 'format') },
  {
    weight: 2,
    arbitrary: fc.constantFrom('__proto__', 'constructor', 'category[$ne]', '$where', 'LIMIT', ''),
  },
  { weight: 1, arbitrary: fc.string({ unit: anyCharacter }) },
);
const values = fc.oneof(
  { weight: 10, arbitrary: fc.nat(30).map(String) },
  { weight: 10, arbitrary: fc.constantFrom(...CATEGORIES) },
  {
    weight: 10,
    arbitrary: fc.constantFrom('price_asc', 'price_desc', 'id_asc', 'id_desc', 'ndjson', 'exact'),
  },
  { weight: 5, arbitrary: cursors },
  {
    weight: 3,
    arbitrary: fc.constantFrom('id,price', 'a,a', '-1', '1e400', '0x1', '1e2', '1.5', ' 1', 'NaN', ''),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom('{"$gt":0}', '__proto__', 'constructor', '\0', '\r\nx: y', '\u{1f4a9}'),
  },
  { weight: 2, arbitrary: fc.maxSafeInteger().map(String) },
  { weight: 2, arbitrary: fc.double().map(String) },
  { weight: 2, arbitrary: fc.string({ unit: anyCharacter, maxLength: 400 }) },
);
const wellFormed = fc
  .tuple(names, values)
  .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
const raw = fc.stringMatching(/^[%=&+;a0fF\\"<>{}[\]\u00e4]{0,12}$/);
const queries = fc
  .array(fc.oneof({ weight: 9, arbitrary: wellFormed }, { weight: 1, arbitrary: raw }), { maxLength: 4 })
  .map((pairs) => pairs.join('&'));
const paths = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('/items', '/items/stream') },
  {
    weight: 2,
    arbitrary: fc.oneof(values, names).map((id) => `/items/${encodeURIComponent(id)}`),
  },
  { weight: 1, arbitrary: raw.map((text) => `/${text}`) },
);

async function textOf({ body }: Reply): Promise<string> {
  if (body.kind === 'bytes') return Buffer.from(body.bytes).toString();
  assert.equal(body.kind, 'stream');
  const chunks: Buffer[] = [];
  await body.run(sinkTo((chunk) => void chunks.push(Buffer.from(chunk))));
  return Buffer.concat(chunks).toString();
}

/** The rows of an answer in any framing. Null when it has none or only a part of them. */
function rowsOf(path: string, text: string): Document[] {
  if (path === '/items') return (JSON.parse(text) as { data: Document[] }).data;
  if (text.startsWith('[')) return JSON.parse(text) as Document[];
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Document);
}

test(`${RUNS} random queries return the rows that were asked for and no others, or a coded 4xx`, async (t) => {
  const opened = await testSqlite(t);
  const { store, slots } = opened;
  await store.items.insert(
    ITEMS.map((item) => BSON.serialize(item)),
    'fail',
  );
  const failures: unknown[] = [];
  const { serve } = await appOn(opened, itemsOf(store), { withKeys: false, limited: true });
  const prototype = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));
  let answered = 0;

  const property = fc.asyncProperty(paths, queries, async (path, query) => {
    const request = requestOf({ path, query });
    const { notes } = request;
    const reply = await serve(request);
    const text = await textOf(reply);
    if (notes.failure !== null) failures.push(notes.failure);
    if (reply.status !== 200) {
      const { code, status } = JSON.parse(text) as { code: string; status: number };
      assert.ok(REFUSALS.includes(code) && status < 500, text);
      return;
    }
    if (path !== '/items' && path !== '/items/stream') return;
    answered++;
    const asked = new URLSearchParams(query);
    const rows = rowsOf(path, text);
    if (asked.has('limit')) assert.ok(rows.length <= Number(asked.get('limit')));
    const whole = ITEMS.map(({ _id, category, price }) => ({ id: _id.value, category, price }));
    for (const row of rows) {
      const item = whole.find(({ id }) => id === row.id);
      assert.ok(item, text);
      if (!asked.has('fields')) assert.deepEqual(row, item);
      if (asked.has('category')) assert.equal(item.category, asked.get('category'));
      if (asked.has('min_price')) assert.ok(item.price >= Number(asked.get('min_price')));
      if (asked.has('max_price')) assert.ok(item.price <= Number(asked.get('max_price')));
    }
  });
  await fc.assert(property, { numRuns: RUNS });
  assert.ok(answered > RUNS / 20, `only ${answered} were answered, too few to prove anything`);
  assert.equal(JSON.stringify(Object.getOwnPropertyNames(Object.prototype)), prototype);
  assert.deepEqual(failures, [], 'no answer is a failure of the server');
  assert.equal(slots.taken, 0);
});
