import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { rightsOf } from '../../src/access/rights.ts';
import type { Client } from '../../src/access/admission.ts';
import type { Editions, MakingProgress, NewestEdition } from '../../src/editions/editions.ts';
import type { Reply, Request } from '../../src/engine/edge.ts';
import { FolderObjects } from '../../src/store/folder/objects.ts';
import { temporaryFolder } from '../support/directory.ts';
import { requestOf } from '../support/engine/engines.ts';
import { AnswerCheck } from '../support/papers/answer-check.ts';
import { appOn, sinkTo } from '../support/process/app.ts';
import { itemsOf } from '../support/resources/items-resource.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';

const OPTIONS = { withKeys: true, limited: true };
const HEAD = Buffer.from('{"edition":"of three rows"}\n');
const ROWS = Buffer.from('{"id":"a"}\n{"id":"b"}\n');
const NAME = createHash('sha256').update(ROWS).digest('hex');
const YEAR = 'max-age=31536000, immutable';

interface Changing {
  key?: NonNullable<Client['key']>;
  making?: MakingProgress | null;
  newest?: NewestEdition;
}

/** The routes of the editions of items, called without a network. */
async function opened(
  t: TestContext,
  how: { readonly isPublic?: boolean; readonly declared?: boolean } = {},
) {
  const { store, slots } = await testSqlite(t);
  const objects = new FolderObjects(await temporaryFolder(t));
  const now: Changing = {};
  const made: string[] = [];
  const editions: Editions = {
    objects,
    declared: () => how.declared ?? true,
    isPublic: () => how.isPublic ?? false,
    newest: () => Promise.resolve(now.newest ?? now.making ?? null),
    make: (resource) => Promise.resolve(void made.push(resource)),
  };
  const client = () => ({ name: 'x', hasKey: true, key: null, owner: 'x', ...(now.key && { key: now.key }) });
  const given = () => ({ client: client() });
  const { serve, routes } = await appOn({ store, slots }, itemsOf(store), OPTIONS, given, editions);
  const check = new AnswerCheck(routes, OPTIONS);
  const watched = check.watch(serve);
  const ask = async (path: string, request: Partial<Request> = {}) => {
    const reply = await watched(requestOf({ path, ...request }));
    const content = await contentOf(reply);
    assert.deepEqual(check.faults, []);
    return { ...reply, text: content.toString(), code: codeIn(content), vary: reply.headers.vary ?? '' };
  };
  return { ask, objects, now, made, routes };
}

async function contentOf({ body }: Reply): Promise<Buffer> {
  if (body.kind === 'bytes') return Buffer.from(body.bytes);
  const pieces: Buffer[] = [];
  const sink = sinkTo((piece) => void pieces.push(Buffer.from(piece)));
  if (body.kind === 'stream') await body.run(sink);
  return Buffer.concat(pieces);
}

function codeIn(content: Buffer): unknown {
  if (!content.includes('"code"')) return undefined;
  return (JSON.parse(content.toString()) as { code?: unknown }).code;
}

/** A key with these rights. */
function keyWith(rights: Parameters<typeof rightsOf>[0]): NonNullable<Client['key']> {
  return { name: 'k', digest: '', rights: rightsOf(rights), expires: Infinity };
}

test('the head of the newest edition has a tag of its bytes, and says how caches may keep it', async (t) => {
  const { ask, now } = await opened(t);
  now.newest = { head: HEAD };
  const first = await ask('/items/edition', { headers: { 'accept-encoding': 'br' } });
  assert.equal(first.status, 200);
  assert.equal(first.text, HEAD.toString());
  assert.equal(first.headers['cache-control'], 'private, max-age=5, stale-while-revalidate=30');
  assert.equal(first.headers['content-encoding'], undefined);
  const { etag = '' } = first.headers;
  assert.match(etag, /^"[0-9a-f]{32}"$/);
  const same = await ask('/items/edition', { headers: { 'if-none-match': etag } });
  assert.equal(same.status, 304);
  assert.equal(same.headers['cache-control'], first.headers['cache-control']);
  const head = await ask('/items/edition', { method: 'HEAD' });
  assert.deepEqual(head.body, { kind: 'head', length: HEAD.length });
  now.newest = { head: Buffer.from('{"edition":"of the same rows, with a later cursor"}\n') };
  assert.equal((await ask('/items/edition', { headers: { 'if-none-match': etag } })).status, 200);
});

test('before there is an edition the answer says how far it has come, and no cache keeps it', async (t) => {
  const { ask, now } = await opened(t);
  for (const making of [null, { progress: { rows: 120_000, of: 1_000_000, bytes: 5 } }]) {
    now.making = making;
    const { status, headers, code, text } = await ask('/items/edition');
    assert.deepEqual(
      [status, code, headers['retry-after'], headers['cache-control']],
      [503, 'not-ready', '5', 'no-store'],
    );
    assert.match(text, making ? /120000 of about 1000000 rows/ : /is going to be made/);
  }
});

test('a resource without editions says how they are declared, and its document does not name them', async (t) => {
  const { ask, now } = await opened(t, { declared: false });
  now.key = keyWith({});
  const { status, code, text, headers } = await ask('/items/edition');
  assert.deepEqual([status, code, headers['cache-control']], [404, 'no-edition', 'no-store']);
  assert.match(text, /EDITIONS=items/);
  assert.equal((await ask(`/items/chunks/${NAME}.ndjson`)).code, 'not-found');
  assert.doesNotMatch((await ask('/openapi.json')).text, /\/items\/edition/);
  const declared = await opened(t);
  declared.now.key = keyWith({});
  assert.match((await declared.ask('/openapi.json')).text, /"\/items\/chunks\/\{file\}"/);
});

test('a row called edition is reached by its first letter in percent-encoding', async (t) => {
  const { ask } = await opened(t);
  assert.match((await ask('/items/%65dition')).text, /No item has the id/);
});

test('files never change: whole, by ranges, with a digest where the name is one', async (t) => {
  const { ask, objects, now } = await opened(t);
  const path = `/items/chunks/${NAME}.ndjson`;
  assert.equal((await ask(path)).code, 'not-found');
  await objects.put(path.slice(1), ROWS);
  await objects.put(`items/chunks/${NAME}.ndjson.gz`, Buffer.from('gzip'));
  await objects.put(`items/edition/${NAME}.json`, HEAD);
  const whole = await ask(path, { headers: { 'accept-encoding': 'br' } });
  assert.deepEqual([whole.status, whole.text], [200, ROWS.toString()]);
  assert.deepEqual(
    ['content-type', 'cache-control', 'accept-ranges', 'content-encoding'].map((name) => whole.headers[name]),
    ['application/x-ndjson', `private, ${YEAR}`, 'bytes', undefined],
  );
  const digest = createHash('sha256').update(ROWS).digest('base64');
  assert.equal(whole.headers['repr-digest'], `sha-256=:${digest}:`);
  const { etag = '' } = whole.headers;
  const range = { range: 'bytes=3-9' };
  const part = await ask(path, { headers: { ...range, 'if-range': etag } });
  assert.deepEqual([part.status, part.text], [206, ROWS.subarray(3, 10).toString()]);
  assert.equal((await ask(path, { headers: { ...range, 'if-range': '"other"' } })).status, 200);
  assert.equal((await ask(path, { headers: { range: 'bytes=99-' } })).code, 'range-not-satisfiable');
  assert.equal((await ask(path, { headers: { 'if-none-match': etag } })).status, 304);
  const zipped = await ask(`/items/chunks/${NAME}.ndjson.gz`);
  assert.deepEqual(
    [zipped.headers['content-type'], zipped.headers['content-encoding']],
    ['application/gzip', undefined],
  );
  assert.notEqual(zipped.headers.etag, etag);
  const kept = await ask(`/items/edition/${NAME}`);
  assert.deepEqual([kept.text, kept.headers['cache-control']], [HEAD.toString(), `private, ${YEAR}`]);
  now.newest = { head: HEAD };
  for (const other of ['edition.json', `${NAME}.exe`, '..%2Fedition.json', `${'0'.repeat(64)}.ndjson`])
    assert.equal((await ask(`/items/chunks/${other}`)).code, 'not-found', other);
  for (const other of ['x', '..%2Fedition', '0'.repeat(64)])
    assert.equal((await ask(`/items/edition/${other}`)).code, 'not-found', other);
});

test('only a public resource is for caches that many share, for all alike and without a key', async (t) => {
  const open = await opened(t, { isPublic: true });
  await open.objects.put(`items/chunks/${NAME}.ndjson`, ROWS);
  open.now.newest = { head: HEAD };
  for (const [path, how] of [
    ['/items/edition', 'public, max-age=5, stale-while-revalidate=30'],
    [`/items/chunks/${NAME}.ndjson`, `public, ${YEAR}`],
  ] as const) {
    const { headers, vary } = await open.ask(path);
    assert.deepEqual([headers['cache-control'], vary], [how, '']);
    // What one client has left is nothing that a cache may tell another one.
    for (const limit of ['ratelimit', 'ratelimit-policy']) assert.ok(!(limit in headers), limit);
    const { etag = '' } = headers;
    const same = await open.ask(path, { headers: { 'if-none-match': etag } });
    assert.deepEqual([same.status, 'ratelimit' in same.headers], [304, false]);
  }
  const access = open
    .routes()
    .filter(({ tag }) => tag === 'Editions')
    .map(({ method, access: of }) => [method, of]);
  assert.deepEqual(access, [
    ['GET', 'open'],
    ['POST', 'keyed'],
    ['GET', 'open'],
    ['GET', 'open'],
  ]);
  const { ask, now } = await opened(t);
  now.newest = { head: HEAD };
  const own = await ask('/items/edition');
  assert.deepEqual([own.vary, own.headers.ratelimit], ['Authorization', 'x']);
});

test('a key needs the right to stream the whole resource, and every field that it shows', async (t) => {
  const { ask, now, objects, made } = await opened(t);
  await objects.put(`items/chunks/${NAME}.ndjson`, ROWS);
  now.newest = { head: HEAD };
  const allowed = async (rights: Parameters<typeof rightsOf>[0], path = '/items/edition', method = 'GET') => {
    now.key = keyWith(rights);
    const { status, text, headers } = await ask(path, { method });
    if (status < 300) return true;
    assert.equal(headers['cache-control'], 'no-store');
    return text;
  };
  const file = `/items/chunks/${NAME}.ndjson`;
  now.key = keyWith({});
  assert.equal((await ask(file)).status, 200);
  assert.equal(await allowed({ actions: ['stream'] }), true);
  assert.equal(
    await allowed({ actions: ['stream'], where: { others: { a: '1' } }, resources: ['items'] }),
    true,
  );
  for (const path of ['/items/edition', file, `/items/edition/${NAME}`]) {
    assert.match(String(await allowed({ actions: ['read'] }, path)), /lacks the right stream/);
    assert.match(
      String(await allowed({ where: { items: { category: 'a' } } }, path)),
      /only some rows of items/,
    );
    assert.match(String(await allowed({ hide: { items: ['cost'] } }, path)), /not all fields of items/);
  }
  assert.match(
    String(await allowed({ actions: ['stream'] }, '/items/edition', 'POST')),
    /lacks the right export/,
  );
  assert.match(
    String(await allowed({ hide: { items: ['cost'] } }, '/items/edition', 'POST')),
    /not all fields/,
  );
  assert.deepEqual(made, []);
  assert.equal(await allowed({ actions: ['export'] }, '/items/edition', 'POST'), true);
  assert.deepEqual(made, ['items']);
});

test('a key is shown the link of an edition where it may have it: all that know of a public resource', async (t) => {
  const rights = [
    {},
    { actions: ['read'] },
    { where: { items: { category: 'a' } } },
    { hide: { items: ['cost'] } },
  ] as const;
  for (const isPublic of [false, true]) {
    const { ask, now } = await opened(t, { isPublic });
    now.newest = { head: HEAD };
    for (const one of rights) {
      now.key = keyWith(one);
      const may = isPublic || one === rights[0];
      const link = JSON.stringify({ edition: '/items/edition' }).slice(1, -1);
      assert.equal((await ask('/resources')).text.includes(link), may, JSON.stringify({ isPublic, one }));
      assert.equal((await ask('/items/edition')).status, may ? 200 : 403);
    }
  }
});

test('an order for an edition says where it will be', async (t) => {
  const { ask } = await opened(t);
  const { status, headers } = await ask('/items/edition', { method: 'POST' });
  assert.deepEqual([status, headers.location, headers['cache-control']], [202, '/items/edition', 'no-store']);
  assert.equal(headers['retry-after'], '5');
});
