import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import type { EditionHead } from '../../src/base/edition/head.ts';
import { Faults } from '../../src/base/errors.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { until } from '../support/store/changes.ts';
import { mongodWithUsers } from '../support/store/mongo/mongo.ts';

type Ask = (path: string, options?: RequestInit) => Promise<Response>;

/** The head of the first edition. */
async function headBy(ask: Ask): Promise<EditionHead> {
  const found: EditionHead[] = [];
  await until('there is an edition', async () => {
    const response = await ask('/items/edition');
    const text = await response.text();
    assert.ok([200, 503].includes(response.status), text);
    if (response.status === 200) found.push(JSON.parse(text) as EditionHead);
    return found.length > 0;
  });
  return found[0] ?? assert.fail();
}

const askOf =
  ({ url }: Pick<TestServer, 'url'>): Ask =>
  (path, options) =>
    fetch(url + path, options);

async function editionsFile(t: TestContext, items: object): Promise<string> {
  return resourcesFile(t, { resources: { items } });
}

test('EDITIONS_URL stands in heads, as the place of files', async (t) => {
  const settings = { MONGODB_URI: '', EDITIONS: 'items', EDITIONS_URL: 'https://cdn.example/editions/' };
  const server = await serverOn(t, settings);
  await server.insert([{ _id: 'a', category: 'a', price: 1 }]);
  const head = await headBy(askOf(server));
  assert.equal(head.files, 'https://cdn.example/editions/items/chunks/');
});

test('with keys, anybody may read the editions of a public resource, and only its keys those of another', async (t) => {
  const keys = [{ name: 'all' }, { name: 'part', where: { items: { category: 'a' } } }];
  for (const isPublic of [true, false]) {
    const RESOURCES_FILE = await editionsFile(t, { editions: {}, public: isPublic });
    const server = await keyedServer(t, 'sqlite', keys, [], { RESOURCES_FILE });
    await server.insert([{ _id: 'a', category: 'a', price: 1 }]);
    const head = await headBy((path, options) => server.as('all', path, options));
    const [index] = head.index;
    const paths = [
      '/items/edition',
      `/items/edition/${head.edition}`,
      `/items/chunks/${index?.name}.index.json`,
    ];
    for (const path of paths) {
      const open = await askOf(server)(path);
      assert.equal(open.status, isPublic ? 200 : 401, path);
      if (isPublic) assert.match(open.headers.get('cache-control') ?? '', /^public, /);
      else assert.equal(open.headers.get('cache-control'), 'no-store');
      const keyed = await server.as('all', path);
      assert.equal(keyed.status, 200);
      assert.match(keyed.headers.get('cache-control') ?? '', isPublic ? /^public, / : /^private, /);
      assert.equal((await server.as('part', path)).status, isPublic ? 200 : 403, path);
    }
    for (const path of ['/items', '/items/stream', '/items/changes'])
      assert.equal((await askOf(server)(path)).status, 401, 'only its editions are public');
    const order = { method: 'POST' };
    assert.equal((await askOf(server)('/items/edition', order)).status, 401);
    assert.equal((await server.as('all', '/items/edition', order)).status, 202);
  }
});

test('bounds of every, keep and chunk are checked at the start, each with its place', async (t) => {
  const faultsOf = async (editions: object) => {
    const RESOURCES_FILE = await editionsFile(t, { editions });
    return serverOn(t, { MONGODB_URI: '', RESOURCES_FILE }).then(
      () => '',
      (error: unknown) => (error instanceof Faults ? error.faults.join('\n') : assert.fail(String(error))),
    );
  };
  for (const [editions, fault] of [
    [{ every: '999 ms' }, /\/resources\/items\/editions\/every/],
    [{ every: '169 h' }, /\/resources\/items\/editions\/every.* must be from 1 s to 168 h/],
    [{ chunk: '15 KiB' }, /\/resources\/items\/editions\/chunk.* must be from 16 KiB to 16 MiB/],
    [{ chunk: '17 MiB' }, /\/resources\/items\/editions\/chunk.* must be from 16 KiB to 16 MiB/],
    [{ chunk: '1 GiB' }, /\/resources\/items\/editions\/chunk/],
    [{ keep: 0 }, /\/resources\/items\/editions\/keep/],
    [{ keep: 101 }, /\/resources\/items\/editions\/keep/],
    [{ keep: 1.5 }, /\/resources\/items\/editions\/keep/],
    [{ formats: [] }, /\/resources\/items\/editions\/formats/],
    [{ formats: ['csv'] }, /\/resources\/items\/editions\/formats/],
  ] as const)
    assert.match(await faultsOf(editions), fault, JSON.stringify(editions));
  for (const editions of [
    { every: '1 s', chunk: '16 KiB', keep: 1 },
    { every: '168 h', chunk: '16 MiB', keep: 100 },
  ])
    assert.equal(await faultsOf(editions), '', JSON.stringify(editions));
});

test('a standalone mongod has no editions, and a user who may not write the record serves none', async (t) => {
  const mongod = await mongodWithUsers(t);
  if (!mongod) return;
  const { as, add, root } = mongod;
  await root.db('shop').collection<{ _id: string }>('orders').insertOne({ _id: 'a' });
  await add('reader', { role: 'read', db: 'shop' });
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const FILES = pathToFileURL(await temporaryFolder(t)).href;
  const settings = { EXPOSE: 'orders', EDITIONS: 'orders', FILES };

  const server = await serverOn(t, { MONGODB_URI: as('root'), ...settings }, { log });
  await until('the log says so', () =>
    Promise.resolve(lines.some((line) => line.includes('editions are not made'))),
  );
  assert.match(
    lines.join(''),
    /"resource":"orders","reason":"Editions need a store with changes\..*replica set/,
  );
  for (const method of ['GET', 'POST']) {
    const response = await fetch(`${server.url}/orders/edition`, { method });
    const { code, detail } = (await response.json()) as { code: string; detail: string };
    assert.deepEqual([response.status, code], [400, 'changes-unsupported'], detail);
    assert.equal(response.headers.get('cache-control'), 'no-store');
  }
  assert.equal((await server.get('/orders')).status, 200);
  await server.close();

  const reader = await serverOn(t, { MONGODB_URI: as('reader'), ...settings }, { log });
  const said = lines.find((line) => line.includes('editions are not served')) ?? '';
  assert.match(said, /"collection":"editions".*may not write this collection/);
  const response = await reader.get('/orders/edition');
  assert.equal(response.status, 404);
  assert.equal(((await response.json()) as { code: string }).code, 'no-edition');
  assert.equal((await reader.get('/orders')).status, 200);
});
