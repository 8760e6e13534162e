import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Collection } from 'mongodb';
import { keyedServer, type KeyedServer, type KeyGiven, type Rows } from './support/keyed.ts';
import { testClient } from './support/mongo.ts';
import { SEED } from './support/seed.ts';

const ORDERS: Rows = {
  name: 'orders',
  rows: [
    { _id: 'own-1', tenant: 'acme', status: 'new' },
    { _id: 'FOREIGN-1', tenant: 'FOREIGN', status: 'new' },
  ],
  indexes: [['tenant'], ['tenant', 'status']],
};
const KEYS: readonly KeyGiven[] = [
  { name: 'acme', where: { orders: { tenant: 'acme' } } },
  { name: 'other', where: { orders: { tenant: 'other' } } },
  { name: 'hides', where: { orders: { tenant: 'acme' } }, hide: { orders: ['status'] } },
  { name: 'all' },
];

interface Row {
  readonly _id: string;
  readonly tenant: string;
  readonly n?: number;
}
interface Tally {
  readonly cursor: string;
  readonly upToDate: boolean;
}
type Line =
  | { readonly id: string }
  | { readonly removed: { readonly id: string } }
  | { readonly checkpoint: Tally }
  | { readonly end: Tally };

interface Opened {
  readonly server: KeyedServer;
  readonly rows: Collection<Row>;
  /** A collection of the same database without pre-images: its changes must not end a stream that needs them. */
  readonly plain: Collection<{ n: number }>;
}

/** A server whose key acme opens its rows of a collection with pre-images. */
async function opened(t: TestContext): Promise<Opened | null> {
  const server = await keyedServer(t, 'mongodb', KEYS, [ORDERS]);
  if (!server) return null;
  const db = testClient(t, server.mongo).db();
  await db.command({ collMod: 'orders', changeStreamPreAndPostImages: { enabled: true } });
  const plain = db.collection<{ n: number }>('plain');
  await plain.insertOne({ n: 1 });
  return { server, rows: db.collection<Row>('orders'), plain };
}

/** All text of an answer, with the content of every token in it. Fails when that tells of a foreign row. */
async function toldBy(answer: Response, what: string): Promise<string> {
  const text = await answer.text();
  assert.equal(answer.status, 200, `${what}: ${text}`);
  assertNoLeak(`${[...answer.headers].join('\n')}\n${text}`, what);
  return text;
}

function assertNoLeak(text: string, what: string): void {
  const tokens = (text.match(/[A-Za-z0-9_-]{12,}/g) ?? []).map((one) => Buffer.from(one, 'base64url'));
  for (const one of [text, ...tokens.map((token) => token.toString('latin1'))])
    assert.doesNotMatch(one, /FOREIGN/, what);
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);

function cursorIn(text: string): string {
  const last = linesOf(text).at(-1);
  assert.ok(last && 'end' in last, text);
  return last.end.cursor;
}

const withoutControl = (text: string) =>
  linesOf(text).flatMap((line) =>
    'id' in line ? [line.id] : 'removed' in line ? [`-${line.removed.id}`] : [],
  );

/** Foreign rows come, change, go, and come again. */
async function foreignHistory(rows: Collection<Row>): Promise<void> {
  await rows.insertOne({ _id: 'FOREIGN-2', tenant: 'FOREIGN' });
  await rows.updateOne({ _id: 'FOREIGN-2' }, { $set: { n: 1 } });
  await rows.deleteOne({ _id: 'FOREIGN-2' });
  await rows.insertOne({ _id: 'FOREIGN-2', tenant: 'FOREIGN', n: 2 });
  await rows.replaceOne({ _id: 'FOREIGN-2' }, { tenant: 'FOREIGN-3' });
}

test('changes of a part tell nothing of foreign rows', async (t) => {
  const at = await opened(t);
  if (!at) return;
  const { server, rows } = at;
  const changes = async (query: string, what: string, headers: Record<string, string> = {}) =>
    toldBy(await server.as('acme', `/orders/changes${query}`, { headers }), what);
  const stream = await server.as('acme', '/orders/stream');
  await stream.text();
  const from = stream.headers.get('changes-from') ?? '';
  assert.notEqual(from, '');

  await foreignHistory(rows);
  for (const query of ['', '&limit=1', '&wait=1', '&fields=id'])
    assert.deepEqual(withoutControl(await changes(`?since=${from}${query}`, query)), []);
  const wide = await server.as('all', '/orders/changes?tenant=acme');
  const before = cursorIn(await wide.text());
  await foreignHistory2(rows);
  const after = await server.as('all', `/orders/changes?tenant=acme&since=${before}&limit=1`);
  const forged = cursorIn(await after.text());
  assert.throws(() => assertNoLeak(forged, 'a token of an event holds its id'));
  assert.equal((await server.as('acme', `/orders/changes?since=${forged}`)).status, 400);
  assert.deepEqual(withoutControl(await changes(`?since=${before}`, 'a place of another key')), []);
  assert.equal((await server.as('other', `/orders/changes?since=${from}`)).status, 400);

  await rows.updateOne({ _id: 'FOREIGN-1' }, { $set: { tenant: 'acme' } });
  await rows.updateOne({ _id: 'own-1' }, { $set: { tenant: 'FOREIGN' } });
  await rows.insertOne({ _id: 'own-2', tenant: 'acme' });
  await rows.insertOne({ _id: 'own-3', tenant: 'acme' });
  await rows.deleteOne({ _id: 'own-3' });
  const mine = await server.as('acme', `/orders/changes?since=${from}`);
  assert.deepEqual(withoutControl(await mine.text()).sort(), ['-own-1', '-own-3', 'FOREIGN-1', 'own-2']);
  await rows.deleteOne({ _id: 'FOREIGN-1' });

  const abort = new AbortController();
  const now = cursorIn(await (await server.as('acme', '/orders/changes')).text());
  const live = await server.as('acme', `/orders/changes?since=${now}`, {
    headers: { accept: 'text/event-stream' },
    signal: abort.signal,
  });
  assert.equal(live.status, 200);
  await foreignHistory2(rows);
  await rows.insertOne({ _id: 'own-9', tenant: 'acme' });
  let text = '';
  for await (const chunk of live.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (/own-9[^]*event: checkpoint/.test(text)) break;
  }
  abort.abort();
  assertNoLeak(text, 'events');
  assert.doesNotMatch(text, /removed":\{/);
});

async function foreignHistory2(rows: Collection<Row>): Promise<void> {
  await rows.deleteOne({ _id: 'FOREIGN-2' });
  await foreignHistory(rows);
}

test('changes of a part are refused where the store cannot tell them apart', async (t) => {
  for (const store of ['lmdb', 'mongodb'] as const) {
    const server = await keyedServer(t, store, KEYS, [ORDERS]);
    if (!server) continue;
    for (const path of ['/orders/changes', '/orders/stream?follow=true'])
      for (const name of ['acme', 'hides']) {
        const answer = await server.as(name, path);
        assert.equal(answer.status, 403, `${store} ${name} ${path}`);
        const text = await answer.text();
        assert.match(text, store === 'mongodb' && name === 'acme' ? /collMod/ : /opens a part of orders/);
      }
    const stream = await server.as('acme', '/orders/stream');
    assert.equal(stream.status, 200);
    assert.equal(stream.headers.get('changes-from'), null);
    await stream.text();
  }
});

/** Numbers that are the same for the same seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('a copy that follows a part equals the rows of the part', async (t) => {
  const at = await opened(t);
  if (!at) return;
  const { server, rows, plain } = at;
  const histories = process.env.LONG === '1' ? 40 : 3;
  for (let n = 0; n < histories; n++) {
    const next = numbers(SEED + n);
    const copy = new Set<string>();
    const apply = (line: Line) => {
      if ('id' in line) copy.add(JSON.stringify(line));
      const id = 'id' in line ? line.id : 'removed' in line ? line.removed.id : null;
      if (id === null) return;
      for (const one of copy)
        if ((JSON.parse(one) as { id: string }).id === id && one !== JSON.stringify(line)) copy.delete(one);
    };
    const abort = new AbortController();
    const follow = await server.as('acme', '/orders/stream?follow=true', { signal: abort.signal });
    assert.equal(follow.status, 200);
    const writing = (async () => {
      for (let step = 0; step < 120; step++) {
        await plain.updateOne({}, { $inc: { n: 1 } });
        const [_id, tenant] = [`row-${next(12)}`, next(2) === 0 ? 'acme' : 'other'];
        if (next(4) === 0) await rows.deleteOne({ _id });
        else if (next(2) === 0) await rows.updateOne({ _id }, { $set: { tenant } });
        else await rows.replaceOne({ _id }, { tenant, n: step }, { upsert: true });
      }
      await rows.replaceOne({ _id: 'last' }, { tenant: 'acme', n }, { upsert: true });
    })();
    let [rest, isOver] = ['', false];
    for await (const chunk of follow.body ?? []) {
      rest += Buffer.from(chunk).toString();
      const whole = rest.slice(0, rest.lastIndexOf('\n') + 1);
      rest = rest.slice(whole.length);
      for (const line of linesOf(whole)) {
        apply(line);
        const hasLast = [...copy].some((one) => one.includes('"last"') && one.includes(`"n":${n}`));
        isOver ||= hasLast && 'checkpoint' in line && line.checkpoint.upToDate;
      }
      if (isOver) break;
    }
    abort.abort();
    await writing;
    const reference = await (await server.as('acme', '/orders/stream')).text();
    const expected = linesOf(reference).filter((line) => 'id' in line);
    assert.deepEqual([...copy].sort(), expected.map((line) => JSON.stringify(line)).sort(), `history ${n}`);
  }
});
