import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jsonOf, linesOf } from '../support/answers.ts';
import { temporaryFolder } from '../support/directory.ts';
import { awaited, fileOf, order } from '../support/exports/exports.ts';
import { documentText, tableRows } from '../support/papers/documents.ts';
import { sluice } from '../support/process/commands.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { mongodWithUsers } from '../support/store/mongo/mongo.ts';

const SERVED = ['orders'];
const wordsIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);

/** MONGODB_PREFIX of the server with users, which are not served beside EXPOSE without one. */
const PREFIX = 'own_';

/** The rights of a use as docs/rights.md has them, as privileges in the database shop. */
function privilegesOf(...uses: readonly string[]) {
  const rows = tableRows(documentText('docs/rights.md'));
  return uses.flatMap((use) => {
    const [, on = '', actions = ''] = rows.find(([first]) => first === use) ?? assert.fail(use);
    const names =
      on === 'the database'
        ? ['']
        : on.startsWith('each')
          ? SERVED
          : wordsIn(on).map((name) => (use === 'users' ? PREFIX + name : name));
    return names.map((collection) => ({
      resource: { db: 'shop', collection },
      actions: wordsIn(actions),
    }));
  });
}

async function statusOf(server: TestServer, path: string, init: RequestInit = {}): Promise<number> {
  const answer = await fetch(server.url + path, init);
  await answer.arrayBuffer();
  return answer.status;
}

test('each use works with exactly the rights that docs/rights.md lists', async (t) => {
  const mongod = await mongodWithUsers(t);
  if (!mongod) return;
  const { root, as, add } = mongod;
  const orders = root.db('shop').collection('orders');
  await orders.insertMany(Array.from({ length: 50 }, (_, n) => ({ status: n % 2 ? 'paid' : 'new', n })));
  await orders.createIndex({ status: 1, _id: 1 });
  const withRights = async (name: string, ...uses: readonly string[]): Promise<string> => {
    await root
      .db('admin')
      .command({ createRole: `of_${name}`, roles: [], privileges: privilegesOf(...uses) });
    await add(name, { role: `of_${name}`, db: 'admin' });
    return as(name);
  };

  await t.test('rows: every read, and the doctor has no FAIL', async () => {
    const MONGODB_URI = await withRights('rows', 'list', 'rows');
    const server = await serverOn(t, { MONGODB_URI, EXPOSE: 'orders' });
    assert.equal((await linesOf(server.get('/orders/stream?status.in=paid,new'))).length, 50);
    for (const path of ['?status=paid&count=exact', '/values?field=status', '/partitions?n=4'])
      assert.equal(await statusOf(server, `/orders${path}`), 200, path);
    const { code, stdout } = await sluice(['doctor'], { MONGODB_URI, EXPOSE: 'orders' });
    assert.equal(code, 0, stdout);
    assert.doesNotMatch(stdout, /FAIL|lsid/);
  });

  await t.test('users', async () => {
    const MONGODB_URI = await withRights('users', 'list', 'rows', 'users');
    const server = await serverOn(t, { MONGODB_URI, EXPOSE: 'orders', MONGODB_PREFIX: PREFIX });
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'Ada', email: 'ada@example.org' });
    assert.equal(await statusOf(server, '/api/users', { method: 'POST', headers, body }), 201);
    assert.equal(await statusOf(server, '/api/users'), 200);
  });

  await t.test('exports', async () => {
    const MONGODB_URI = await withRights('exports', 'list', 'rows', 'exports');
    const server = await serverOn(t, { MONGODB_URI, EXPOSE: 'orders' });
    const { id } = await order(server.url, { resource: 'orders' });
    const bytes = await fileOf(server.url, await awaited(server.url, id));
    assert.equal(bytes.toString().trim().split('\n').length, 50);
  });

  await t.test('indexes of RESOURCES_FILE', async () => {
    const MONGODB_URI = await withRights('indexes', 'list', 'rows', 'indexes');
    const RESOURCES_FILE = await resourcesFile(t, { resources: { orders: { indexes: [['n']] } } });
    const server = await serverOn(t, { MONGODB_URI, RESOURCES_FILE });
    const { data } = (await jsonOf(server.get('/orders?sort=n_desc&limit=1'))) as { data: { n: number }[] };
    assert.equal(data[0]?.n, 49);
  });

  await t.test('imports', async () => {
    await add('imports', { role: 'readWrite', db: 'shop' });
    const file = join(await temporaryFolder(t), 'stock.ndjson');
    await writeFile(file, '{"_id":1,"a":1}\n{"_id":2,"a":2}\n');
    for (const more of [[], ['--drop', '--yes']]) {
      const { code, said } = await sluice(['import', file, ...more], { MONGODB_URI: as('imports') });
      assert.equal(code, 0, said);
    }
    assert.equal(await root.db('shop').collection('stock').countDocuments(), 2);
  });

  await t.test('without one of the rights of rows, none is read', async () => {
    for (const lacking of ['find', 'listIndexes', 'listCollections']) {
      const privileges = privilegesOf('list', 'rows').map((one) => ({
        ...one,
        actions: one.actions.filter((action) => action !== lacking),
      }));
      await root.db('admin').command({
        createRole: `no_${lacking}`,
        roles: [],
        privileges: privileges.filter(({ actions }) => actions.length > 0),
      });
      await add(`without_${lacking}`, { role: `no_${lacking}`, db: 'admin' });
      const { code, stdout } = await sluice(['doctor'], {
        MONGODB_URI: as(`without_${lacking}`),
        EXPOSE: 'orders',
      });
      assert.equal(code, 1, `${lacking}: ${stdout}`);
    }
  });
});
