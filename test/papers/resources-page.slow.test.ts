import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jsonOf, problemOf, type Page } from '../support/answers.ts';
import { temporaryFolder } from '../support/directory.ts';
import { section } from '../support/papers/documents.ts';
import { sluice } from '../support/process/commands.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { mongodWithUsers } from '../support/store/mongo/mongo.ts';

type Row = Readonly<Record<string, unknown>>;

/** The files that a section of the page shows. */
function filesIn(heading: string): string[] {
  const text = section('docs/resources.md', heading);
  return [...text.matchAll(/```json\n([^]*?)```/g)].map(([, block = '']) => block);
}

async function rowsOf(server: TestServer, path: string, key?: string): Promise<readonly Row[]> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return ((await jsonOf(fetch(server.url + path, { headers }))) as Page<Row>).data;
}

test('the three examples of docs/resources.md do what the page says', async (t) => {
  const mongod = await mongodWithUsers(t);
  if (!mongod) return;
  const { root, as } = mongod;
  const MONGODB_URI = as('root');
  const shop = root.db('shop');
  const folder = await temporaryFolder(t);
  const fileOf = async (name: string, text: string): Promise<string> => {
    const file = join(folder, name);
    await writeFile(file, text);
    return file;
  };
  const checked = async (settings: Record<string, string>): Promise<void> => {
    const { code, stdout } = await sluice(['doctor'], { MONGODB_URI, ...settings });
    assert.equal(code, 0, stdout);
  };

  await t.test('hidden fields and kinds, from what init prints to a server', async () => {
    const customers = shop.collection<Row>('customers');
    await customers.insertOne({
      zip: '01099',
      joined: new Date('2026-02-01'),
      passwordHash: 'secret',
      card: { number: 'secret', kind: 'visa' },
    });
    await customers.insertOne({ zip: 1099, joined: new Date('2025-02-01') });
    for (const path of ['zip', 'joined']) await customers.createIndex({ [path]: 1, _id: 1 });
    const printed = await sluice(['init'], { MONGODB_URI });
    assert.equal(printed.code, 0, printed.said);
    const [shown = ''] = filesIn('Hidden fields and kinds');
    const init = JSON.parse(printed.stdout) as { resources: { customers: object } };
    const edited = JSON.parse(shown) as { resources: { customers: object } };
    Object.assign(init.resources.customers, edited.resources.customers);
    const RESOURCES_FILE = await fileOf('edited.json', JSON.stringify(init));
    await checked({ RESOURCES_FILE });
    for (const file of [RESOURCES_FILE, await fileOf('shown.json', shown)]) {
      const server = await serverOn(t, { MONGODB_URI, RESOURCES_FILE: file });
      const [row, ...others] = await rowsOf(server, '/customers?zip=01099');
      assert.deepEqual([row?.card, row?.passwordHash, others], [{ kind: 'visa' }, undefined, []]);
      assert.equal((await rowsOf(server, '/customers?joined.gte=2026-01-01')).length, 1);
    }
  });

  await t.test('another name, indexes and aliases', async () => {
    const heads = shop.collection<Row>('tbl_order_head');
    const rows = [1, 2, 3].map((n) => ({
      n,
      status: 'paid',
      createdAt: new Date(n),
      customer: { id: n + 5 },
    }));
    await heads.insertMany(rows);
    const RESOURCES_FILE = await fileOf('names.json', filesIn('Another name, indexes and aliases')[0] ?? '');
    const server = await serverOn(t, { MONGODB_URI, RESOURCES_FILE });
    const ordered = await rowsOf(server, '/orders?status=paid&sort=createdAt_desc');
    assert.deepEqual(
      ordered.map(({ n }) => n),
      [3, 2, 1],
    );
    for (const path of ['/orders?customer.id=7', '/orders?customer=7']) {
      const own = await rowsOf(server, path);
      assert.deepEqual(
        own.map(({ n }) => n),
        [2],
        path,
      );
    }
    assert.equal((await rowsOf(server, '/orders?status=paid&from=2026-01-01')).length, 0);
    assert.equal((await rowsOf(server, '/orders?status=paid&from=1969-01-01')).length, 3);
    assert.equal((await problemOf(server.get('/tbl_order_head'))).status, 404);
    await checked({ RESOURCES_FILE });
  });

  await t.test('several databases, with keys', async () => {
    await shop.collection('orders').insertOne({ n: 1 });
    const leads = root.db('crm').collection<Row>('leads');
    await leads.insertMany([
      { n: 1, region: 'EU', notes: 'secret' },
      { n: 2, region: 'US', notes: 'secret' },
    ]);
    await leads.createIndex({ region: 1, _id: 1 });
    const [resources = '', keys = ''] = filesIn('Several databases, with keys');
    const RESOURCES_FILE = await fileOf('several.json', resources);
    const API_KEYS_FILE = await fileOf('keys.json', keys);
    const server = await serverOn(t, { MONGODB_URI, RESOURCES_FILE, API_KEYS_FILE });
    assert.equal((await rowsOf(server, '/orders', 'foo')).length, 1);
    const own = await rowsOf(server, '/leads', 'bar');
    assert.deepEqual(
      own.map(({ n, notes }) => [n, notes]),
      [[1, undefined]],
    );
    for (const [path, key] of [
      ['/leads', 'foo'],
      ['/orders', 'bar'],
      ['/orders', 'other'],
    ] as const)
      assert.ok(
        [401, 404].includes(
          (await fetch(server.url + path, { headers: { authorization: `Bearer ${key}` } })).status,
        ),
      );
  });
});
