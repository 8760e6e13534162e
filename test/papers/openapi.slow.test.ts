import { Validator } from '@seriousme/openapi-schema-validator';
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import {
  AppError,
  changesExpired,
  changesUnsupported,
  collectionReplaced,
  storeUnavailable,
  storeUnfit,
} from '../../src/base/errors.ts';
import type { ProblemCode } from '../../src/base/problems.ts';
import type { Request } from '../../src/engine/edge.ts';
import type { Route } from '../../src/http/route.ts';
import { problemsByStatus } from '../../src/openapi/document.ts';
import { encodeToken } from '../../src/resources/token/token.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { ReadTurns } from '../../src/store/turns/read-turns.ts';
import { streamReader } from '../../src/store/turns/readers.ts';
import type { RecordDeclaration } from '../../src/store/records.ts';
import type { Store } from '../../src/store/store.ts';
import { USERS } from '../../src/users/row.ts';
import { AnswerCheck } from '../support/papers/answer-check.ts';
import { firstColumn } from '../support/papers/documents.ts';
import { asShown, CURSOR, PART } from '../support/papers/varying.ts';
import { jsonOf } from '../support/answers.ts';
import type { StreamList } from '../support/telemetry/streams.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { requestOf } from '../support/engine/engines.ts';
import { appOn, sinkTo } from '../support/process/app.ts';
import { itemsOf } from '../support/resources/items-resource.ts';
import { withOverrides } from '../support/store/with-overrides.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { withThese, type StoreWithItems } from '../support/store/with-items.ts';
import { bearer, keyedServer } from '../support/access/keyed.ts';
import { serverOn } from '../support/process/server.ts';
import { shared } from '../support/tests-with.ts';

const OPTIONS = { withKeys: true, limited: true };

const catalogue = shared((t) => serverOn(t, { MONGODB_URI: '', SAMPLE: 'auto' }));

interface Document {
  readonly paths: Record<string, Record<string, { readonly operationId: string }>>;
}

test('/openapi.json is a valid OpenAPI 3.1 document, and its examples equal the answers of the bundled catalogue', async (t) => {
  const server = (await catalogue(t)) ?? assert.fail();
  const document = (await (await server.get('/openapi.json')).json()) as Document;
  const { valid, errors } = await new Validator().validate({ ...document });
  assert.ok(valid, JSON.stringify(errors));
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length);
  const { clients } = (await (await server.get('/clients')).json()) as { clients: { url: string }[] };
  const files = ['/', '/docs', ...clients.map(({ url }) => url.replace(/-\d+\.\d+\.\d+-/, '-{version}-'))];
  const operated = requestsOf(document);
  for (const path of files) assert.ok(!operated.includes(`GET ${path}`), `the file ${path} is no operation`);
  const requests = [...operated, ...files.map((path) => `GET ${path}`)];
  assert.deepEqual(firstColumn('docs/api.md', 'Requests').sort(), requests.sort());

  let compared = 0;
  for (const [type, { bundled }] of examplesIn(document)) {
    const response = await server.get(bundled.summary.replace('GET ', ''), { accept: type });
    const text = asShown(await response.text(), [CURSOR, PART]);
    assert.deepEqual(type === 'application/json' ? JSON.parse(text) : text, bundled.value, bundled.summary);
    compared++;
  }
  assert.ok(compared > 8, `${compared} examples`);
});

type Given = string | number | readonly string[];

interface FilledIn {
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly example?: Given;
    readonly schema: { readonly default?: Given; readonly enum?: readonly Given[] };
  }[];
}

test('the default request of the reference page succeeds, for every operation that reads', async (t) => {
  const server = (await catalogue(t)) ?? assert.fail();
  const { paths } = (await (await server.get('/openapi.json')).json()) as {
    paths: Record<string, Record<string, FilledIn>>;
  };
  let asked = 0;
  for (const [path, { get }] of Object.entries(paths)) {
    if (!get || path.includes('{')) continue;
    const query = new URLSearchParams();
    for (const { name, in: place, example, schema } of get.parameters ?? []) {
      const value = example ?? schema.default ?? schema.enum?.[0];
      if (place === 'query' && value !== undefined) query.set(name, String(value));
    }
    const response = await server.get(`${path}?${query.toString()}`);
    assert.equal(response.status, 200, `${path}?${query.toString()}: ${await response.text()}`);
    asked++;
  }
  assert.ok(asked >= 10, `${asked} operations`);
});

function requestsOf({ paths }: Document): string[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((key) => `${key.toUpperCase()} ${path}`),
  );
}

interface Example {
  readonly bundled: { readonly summary: string; readonly value: unknown };
}

function examplesIn(value: unknown, type = ''): [type: string, example: Example][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, entry]: [string, unknown]) =>
    key === 'examples' && typeof entry === 'object' && entry !== null && 'bundled' in entry
      ? [[type, entry as Example]]
      : examplesIn(entry, key),
  );
}

/** How to change a request, or which server to send it to, so that it gets this answer. */
interface Twist {
  readonly request?: Partial<Pick<Request, 'query' | 'headers' | 'path' | 'body'>>;
  /** The refused client, and the reason. */
  readonly refused?: AppError;
  /** The error of every call of the store. */
  readonly failing?: Error;
  readonly draining?: true;
}

const json = { 'content-type': 'application/json' };
const bodyOf = (text: string, headers: Request['headers'] = json): Twist => ({
  request: { headers, body: () => Promise.resolve(Buffer.from(text)) },
});
const query = (text: string): Twist => ({ request: { query: text } });
const refusal = (code: ProblemCode): Twist => ({
  refused: new AppError(code, 'x', { headers: { 'retry-after': '1' } }),
});
const failing = (error: Error): Twist => ({ failing: error });
/** Cursors of another collection: of its rows, and of its changes. */
const OTHERS = { types: new Uint8Array(0), fingerprint: 0 };
const OTHER_CURSOR = encodeToken('row', OTHERS, makeBookmark({ _id: 1 }));
const OTHER_FEED = encodeToken('feed', { ...OTHERS, identity: 'a'.repeat(32) }, new Uint8Array(2));

/** How each code is provoked. */
const PROVOKED: Record<ProblemCode, Twist> = {
  'invalid-parameter': query('=%zz'),
  'unknown-parameter': query('nope=1'),
  'duplicate-parameter': refusal('duplicate-parameter'),
  'conflicting-parameters': {}, // see CONFLICTS
  'not-indexed': refusal('not-indexed'),
  'ambiguous-value': refusal('ambiguous-value'),
  'offset-too-deep': query('offset=100000000'),
  'invalid-cursor': query('cursor=x'),
  'cursor-mismatch': query(`cursor=${OTHER_CURSOR}`),
  'snapshot-unsupported': query('consistency=snapshot'),
  'changes-unsupported': failing(changesUnsupported('x')),
  'changes-expired': failing(changesExpired()),
  'snapshot-expired': failing(new AppError('snapshot-expired', 'x')),
  'collection-replaced': failing(collectionReplaced()),
  'invalid-url': { request: { path: '/%zz' } },
  'invalid-header': { request: { headers: { ...json, 'if-match': 'x' } } },
  'malformed-json': bodyOf('{'),
  unauthorized: refusal('unauthorized'),
  forbidden: refusal('forbidden'),
  'not-found': { request: { path: '/none' } },
  'method-not-allowed': {},
  'no-edition': {},
  'not-ready': refusal('not-ready'),
  'not-acceptable': { request: { headers: { accept: 'image/png', 'accept-encoding': 'identity;q=0, x' } } },
  'precondition-failed': { request: { headers: { ...json, 'if-match': '"x"' } } },
  'body-too-large': {
    request: { headers: json, body: () => Promise.reject(new AppError('body-too-large', 'x')) },
  },
  'uri-too-long': query('x'.repeat(15_000)),
  'unsupported-media-type': bodyOf('{}', { 'content-type': 'text/plain' }),
  'invalid-body': bodyOf('{"nope":1}'),
  'misdirected-request': refusal('misdirected-request'),
  'sort-value-too-long': failing(new AppError('sort-value-too-long', 'x')),
  'rate-limited': refusal('rate-limited'),
  'too-many-streams': refusal('too-many-streams'),
  internal: refusal('internal'),
  overloaded: refusal('overloaded'),
  'key-server-unavailable': refusal('key-server-unavailable'),
  'store-unavailable': failing(storeUnavailable(new Error('x'))),
  'store-unfit': failing(storeUnfit('x')),
  'export-not-complete': refusal('export-not-complete'),
  'export-file-lost': refusal('export-file-lost'),
  'range-not-satisfiable': refusal('range-not-satisfiable'),
  'too-many-exports': refusal('too-many-exports'),
  'insufficient-storage': failing(new AppError('insufficient-storage', 'x')),
};

const CONFLICTS: Record<string, string> = {
  listItems: 'offset=1&page=1',
  listUsers: 'offset=1&page=1',
  listPartitions: 'consistency=live&at=1',
  streamItems: 'cursor=a&after=b',
  listItemChanges: 'limit=1',
  listChanges: 'limit=1&resources=items',
};

/** Codes that the changes of items are provoked to by another parameter. The second cursor is of another filter. */
const OF_CHANGES: Partial<Record<ProblemCode, Twist>> = {
  'invalid-cursor': query('since=x'),
  'cursor-mismatch': query(`since=${OTHER_FEED}`),
};

function twistFor({ id, path }: Route, code: ProblemCode): Twist {
  if (code === 'not-found' && (id === 'putUser' || !path.includes('{'))) return refusal(code); // for keys that do not open the resource
  if (code === 'conflicting-parameters') return query(CONFLICTS[id] ?? '');
  const twist = (/^list(Item)?Changes$/.test(id) ? OF_CHANGES[code] : undefined) ?? PROVOKED[code];
  const needed = { listItemValues: 'field=price', listChanges: 'resources=items' }[id];
  if (needed === undefined || twist.refused) return twist;
  const { request } = twist;
  return { ...twist, request: { ...request, query: `${needed}&${request?.query ?? ''}` } };
}

/** How each successful answer is provoked that the plain request does not get. */
const ANSWERED: Record<string, Twist> = {
  'getReadiness 503': { draining: true },
  'listItemValues 200': query('field=price'),
  'listChanges 200': query('resources=items'),
  'deleteUser 204': { request: { headers: { prefer: 'return=minimal' } } },
};

test('every status and problem of the document occurs, and answers are as documented', async (t) => {
  const server = await serverOnFakes(t);
  for (const route of server.routes) {
    const plain = await server.ask(route, {});
    const { etag } = plain.headers;
    if (etag !== undefined) await server.ask(route, { request: { headers: { 'if-none-match': etag } } });
    for (const [name, twist] of Object.entries(ANSWERED))
      if (name.startsWith(`${route.id} `)) await server.ask(route, twist);
    for (const code of [...problemsByStatus(route, OPTIONS).values()].flat())
      await server.ask(route, twistFor(route, code));
  }
  const elsewhere = new Set([
    ...(await seenOfAnExport(t)),
    ...(await seenOfAWriter(t)),
    ...(await seenOfALink(t)),
    ...(await seenOfACut(t)),
  ]);
  assert.deepEqual(server.check.faults, []);
  const documented = server.routes.flatMap((route) => [
    ...Object.keys(route.answers).map((status) => `${route.id} ${status}`),
    ...[...problemsByStatus(route, OPTIONS).values()].flat().map((code) => `${route.id} ${code}`),
  ]);
  assert.deepEqual(
    documented.filter((answer) => !server.check.seen.has(answer) && !elsewhere.has(answer)),
    [],
    'documented, but no request gets this answer',
  );
});

/** The answers about users to a key that may only write. All are validated. */
async function seenOfAWriter(t: TestContext): Promise<ReadonlySet<string>> {
  const keys = [{ name: 'writes', resources: ['users'], actions: ['users:write'] }];
  const server = await keyedServer(t, 'sqlite', keys, []);
  const headers = { ...bearer('writes'), 'content-type': 'application/json' };
  const body = JSON.stringify({ name: 'Eve', email: 'eve@x.example' });
  for (const [method, content] of [
    ['PUT', body],
    ['PUT', body],
    ['PATCH', '{}'],
  ] as const)
    await (await fetch(`${server.url}/api/users/eve`, { method, headers, body: content })).text();
  return server.check.seen;
}

/** The answers about a stream that is open, and is cut. All are validated. */
async function seenOfACut(t: TestContext): Promise<ReadonlySet<string>> {
  const server = await serverOn(t, { MONGODB_URI: '' });
  await server.insert([{ _id: 'a', category: 'x', price: 1 }]);
  const stream = await server.get('/items/stream?follow=true');
  const { data } = (await jsonOf(server.get('/metrics/streams'))) as StreamList;
  for (const { id } of data) await fetch(`${server.url}/metrics/streams/${id}`, { method: 'DELETE' });
  await assert.rejects(stream.text(), /terminated/);
  return server.check.seen;
}

/** The answers about the file of an export whose files have links. All are validated. */
async function seenOfALink(t: TestContext): Promise<ReadonlySet<string>> {
  const link = () => 'https://bucket.example/file?X-Amz-Signature=1';
  const server = await serverOn(
    t,
    { MONGODB_URI: '' },
    { tapStore: (store) => withOverrides(store, { files: withOverrides(store.files, { link }) }) },
  );
  const { id } = await awaited(server.url, (await order(server.url, { format: 'csv' })).id);
  for (const more of ['', '?proxy=true'])
    await (await fetch(`${server.url}/exports/${id}/file${more}`, { redirect: 'manual' })).text();
  return server.check.seen;
}

/** The answers of a real server about an export from its order to its end. All are validated. */
async function seenOfAnExport(t: TestContext): Promise<ReadonlySet<string>> {
  const server = await serverOn(t, { MONGODB_URI: '' });
  await server.insert([{ _id: 'a', category: 'x', price: 1 }]);
  const ask = async (path: string, method = 'GET', headers: Record<string, string> = {}, body?: string) => {
    const response = await fetch(server.url + path, { method, headers, ...(body !== undefined && { body }) });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text };
  };
  const order = async (): Promise<string> => {
    const { headers } = await ask('/exports', 'POST', json, '{}');
    return headers.get('location') ?? '';
  };
  await ask('/items/stream', 'GET', { prefer: 'respond-async' });
  await ask('/exports');
  const one = await order();
  const other = await order();
  for (const path of [one, other])
    for (let state = ''; state !== 'complete';)
      ({ state } = JSON.parse((await ask(path)).text) as { state: string });
  const { headers } = await ask(`${one}/file`);
  await ask(`${one}/file`, 'GET', { range: 'bytes=0-3' });
  await ask(`${one}/file`, 'GET', { 'if-none-match': headers.get('etag') ?? '' });
  for (const twist of ['invalid-header', 'precondition-failed'] as const)
    await ask(`${one}/file`, 'GET', { 'if-match': PROVOKED[twist].request?.headers?.['if-match'] ?? '' });
  await ask(one, 'DELETE');
  await ask(other, 'DELETE', { prefer: 'return=minimal' });
  return server.check.seen;
}

test('every route and parameter is documented in words', async (t) => {
  const { routes } = await serverOnFakes(t);
  for (const { method, path, id, summary, parameters = {}, query = [] } of routes) {
    const name = `${method} ${path}`;
    assert.ok(summary.length > 5, name);
    assert.match(id, /^[a-z]+[A-Za-z]+$/);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
    assert.deepEqual(Object.keys(parameters), inPath, name);
    for (const parameter of query) assert.ok(parameter.doc?.description, `${name}: ${parameter.name}`);
    for (const parameter of Object.values(parameters)) assert.ok(parameter.description, name);
  }
});

/** The application on a store of three items and a user, called without a network. */
async function serverOnFakes(t: TestContext) {
  const { store, slots } = await testSqlite(t);
  const rows = ['a', 'b', 'c'].map((id, n) => BSON.serialize({ _id: id, category: 'x', price: n }));
  await store.items.insert(rows, 'fail');
  const users = await store.records(USERS);
  let twist: Twist = {};
  const fake = failingStore(store, () => twist.failing);
  const items = itemsOf(fake, (read) => streamReader(read, new ReadTurns(), { retryMs: 0 }));
  const { serve, routes: routesOfNow } = await appOn({ store: fake, slots }, items, OPTIONS, () => ({
    ...(twist.refused && { refused: twist.refused }),
    isDraining: twist.draining ?? false,
  }));
  const routes = routesOfNow();
  const check = new AnswerCheck(() => routes, OPTIONS);
  const watched = check.watch(serve);
  const ask = async (route: Route, next: Twist) => {
    await users.change('ada', () => BSON.serialize(USER));
    twist = next;
    const example = route.body ? JSON.stringify(route.body.example) : '';
    const reply = await watched(
      requestOf({
        method: route.method,
        ...(example !== '' && { headers: json, body: () => Promise.resolve(Buffer.from(example)) }),
        ...next.request,
        path: pathOf(route, next.request?.path?.slice(1)),
      }),
    );
    twist = {};
    if (reply.body.kind === 'stream') await reply.body.run(sinkTo(() => undefined));
    return reply;
  };
  // PUT creates only a user that does not exist.
  ANSWERED['putUser 201'] = { request: { path: '/new' } };
  return { routes, check, ask };
}

const USER = {
  _id: 'ada',
  name: 'Ada',
  email: 'ada@example.org',
  createdAt: new Date(0),
  updatedAt: new Date(0),
};
/** A path to an existing resource. */
function pathOf({ path, tag }: Route, segment?: string): string {
  return path.replace(/\{(\w+)\}/, (_, name: string) => {
    if (segment !== undefined) return segment;
    if (name === 'code') return 'not-found';
    if (tag === 'Exports') return '0'.repeat(32);
    return tag === 'Items' ? 'a' : 'ada';
  });
}

/** A store that the test can make fail. */
function failingStore(store: StoreWithItems, failure: () => Error | undefined): StoreWithItems {
  const proxy = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, name) {
        const value: unknown = Reflect.get(object, name);
        if (typeof value !== 'function') return value;
        return (...call: unknown[]): unknown => {
          const error = failure();
          return error ? Promise.reject(error) : Reflect.apply(value, object, call);
        };
      },
    });
  const items = proxy(store.items);
  const records = async (declaration: RecordDeclaration) => proxy(await store.records(declaration));
  return withThese(proxy(withOverrides<Store>(store, { records })), () => items);
}
