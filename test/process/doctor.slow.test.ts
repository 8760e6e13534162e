import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sluice } from '../support/process/commands.ts';
import { mongodWithUsers, testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn } from '../support/process/server.ts';
import { filesAt, keysAt, newFiles } from '../support/store/bucket/bucket.ts';
import { ADMIN, READER, Seaweed } from '../support/store/bucket/seaweed.ts';

/** Runs `sluice doctor`. Resolves with its lines by their marks, those of the kernel left out. */
async function doctor(args: readonly string[], environment: NodeJS.ProcessEnv) {
  const { code, stdout, said } = await sluice(['doctor', ...args], environment);
  assert.equal(said, '');
  const lines = stdout.trimEnd().split('\n');
  const marked = (mark: string) =>
    lines
      .filter((line) => line.startsWith(`${mark.padEnd(4)}  `))
      .map((line) => line.slice(6))
      .filter((line) => !line.includes(' - /proc/'));
  assert.equal(code, lines.some((line) => line.startsWith('FAIL  ')) ? 1 : 0);
  return { ok: marked('ok'), fail: marked('FAIL'), unseen: marked('warn'), text: stdout };
}

/** The promises of lines. */
const promises = (lines: readonly string[]) => lines.map((line) => line.split(' - ')[0]);

test('a replica set that a server has used keeps every promise, and nothing is written', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const db = testClient(t, uri).db();
  const names = async () => (await db.listCollections().toArray()).map(({ name }) => name);
  const before = await doctor([uri], {});
  assert.deepEqual(before.fail, [
    `/items has its collection - listCollections: ${db.databaseName}.items is missing: the first start of the server makes it`,
  ]);
  assert.deepEqual(await names(), []);

  const server = await serverOn(t, { MONGODB_URI: uri });
  await server.insert([{ _id: 'a', category: 'a', price: 1 }]);
  const used = await doctor([], { MONGODB_URI: uri });
  assert.deepEqual(used.fail, []);
  for (const promise of [
    'the database is MongoDB 6.0 or newer',
    'snapshots and changes are served',
    'users can be read and written',
    'exports can be ordered',
    '/items is read inside its bounds',
    '/items has an index for each order that is declared',
    'snapshots last for a minute or more',
    'changes can be read from the past',
  ])
    assert.ok(promises(used.ok).includes(promise), `${promise}\n${used.text}`);
  assert.deepEqual(promises(used.unseen), [
    'another member takes over when one fails',
    '/items has changes for keys that open a part',
  ]);

  await db.collection('items').dropIndex('price_1__id_1');
  const orders = db.collection('orders');
  await orders.insertOne({ tenant: 'a', tags: ['x'] });
  await orders.createIndex({ tags: 1, _id: 1 });
  const keys = join(await temporaryFolder(t), 'keys.json');
  const key = {
    name: 'a',
    sha256: '0'.repeat(64),
    resources: ['orders'],
    where: { orders: { tenant: 'a' } },
  };
  writeFileSync(keys, JSON.stringify({ keys: [key] }));
  const worse = await doctor([], {
    MONGODB_URI: uri,
    EXPOSE: 'orders,nothing',
    SAMPLE: 'on',
    API_KEYS_FILE: keys,
  });
  assert.match(worse.fail.join('\n'), /\/items has an index .* an index on price, _id is missing/);
  assert.match(
    worse.fail.join('\n'),
    /\/orders has changes for keys that open a part - .*no pre-images: db\.getSiblingDB\(".*"\)\.runCommand/,
  );
  assert.match(worse.fail.join('\n'), /\/nothing has its collection/);
  assert.match(
    worse.unseen.join('\n'),
    /\/orders stays readable - The index 'tags_1__id_1' .* has, or had, an array/,
  );
});

test('a standalone has no snapshots and changes, and a user that may only read has no users and exports', async (t) => {
  const mongod = await mongodWithUsers(t);
  if (!mongod) return;
  const { as, root } = mongod;
  await mongod.add('reader', { role: 'read', db: 'shop' });
  await root.db().createCollection('orders');

  const reader = await doctor([as('reader')], { EXPOSE: 'orders' });
  assert.deepEqual(reader.fail, [], 'users are not served beside EXPOSE');
  assert.deepEqual(promises(reader.unseen).slice(0, 3), [
    'snapshots and changes are served',
    'another member takes over when one fails',
    'exports can be ordered',
  ]);
  const own = await doctor([as('reader')], { EXPOSE: 'orders', MONGODB_PREFIX: 'own_' });
  assert.deepEqual(promises(own.fail), ['users can be read and written', 'exports can be ordered']);
  assert.match(
    own.fail[0] ?? '',
    /connectionStatus: the user lacks insert, update, remove on shop\.own_users$/,
  );
  await root.db('admin').command({
    createRole: 'finds',
    roles: [],
    privileges: [{ resource: { db: 'shop', collection: 'orders' }, actions: ['find'] }],
  });
  await mongod.add('finder', { role: 'finds', db: 'admin' });
  const finder = await doctor([as('finder')], { EXPOSE: 'orders' });
  assert.deepEqual(finder.fail, [
    'the collections can be listed - listCollections: the user may not run listCollections on the database shop',
  ]);
  await root.db().createCollection('Order Items');
  await root.db().createCollection('paid', { viewOn: 'orders' });
  const pattern = await doctor([as('reader')], { EXPOSE: '*' });
  assert.match(
    pattern.unseen.join('\n'),
    /serves Order Items - .*cannot be a segment of a URL; RESOURCES_FILE can give another name/,
  );
  assert.match(
    pattern.unseen.join('\n'),
    /serves paid - listCollections: it is a view, not a collection; an aggregation that ends in \$merge/,
  );
  assert.doesNotMatch(pattern.text, /lsid|clusterTime|signature/);
  assert.ok(promises(reader.ok).includes('/orders is read inside its bounds'));
  const all = await doctor([as('root')], { EXPOSE: 'orders' });
  assert.deepEqual(all.fail, []);
  const stranger = await doctor([as('stranger')], { EXPOSE: 'orders' });
  assert.match(stranger.fail.join(), /MongoDB 6\.0 or newer - hello: Authentication failed/);
  for (const { text } of [reader, all, stranger, finder]) assert.doesNotMatch(text, /:pw/);
});

test('the embedded store: a missing one is not made, a whole one holds, damage and wrong arguments are named', async (t) => {
  const directory = join(await temporaryFolder(t), 'data');
  const missing = await doctor([], { DATA_DIR: directory });
  assert.match(missing.fail.join(), /there is a store - stat: .*sluice\.db is missing/);
  assert.ok(!existsSync(directory));

  const server = await serverOn(t, { MONGODB_URI: '', DATA_DIR: directory });
  await server.insert([{ _id: 'a', category: 'a', price: 1 }]);
  const whole = await doctor([], { DATA_DIR: directory });
  assert.deepEqual(whole.fail, []);
  assert.match(
    whole.ok.join('\n'),
    /every row and index entry is whole - sluice check: .*items: 1 rows, 3 indexes/,
  );
  assert.match(
    whole.text,
    /MAX_STREAMS=5000 streams can be open - \/proc\/self\/limits: this process may open \d+ files/,
  );
  const many = await sluice(['doctor'], { DATA_DIR: directory, MAX_STREAMS: '1000000' });
  assert.match(many.stdout, /^warn {2}MAX_STREAMS=1000000 streams can be open/m);
  assert.equal(many.code, 0);

  const two = await sluice(['doctor', 'mongodb://a', 'mongodb://b'], { DATA_DIR: directory });
  assert.deepEqual(
    [two.code, two.said.split('\n')[0]],
    [2, 'sluice: expected: sluice doctor, or sluice doctor MONGODB_URI'],
  );
  const other = await sluice(['doctor', 'http://x'], { DATA_DIR: directory });
  assert.equal(other.code, 2);
});

test('what editions need is examined where they are declared: files, rights, changes, keys and columns', async (t) => {
  const folder = await temporaryFolder(t);
  const file = (name: string, content: object) => {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(content));
    return path;
  };
  const key = { name: 'acme', sha256: '0'.repeat(64), where: { items: { category: 'a' } } };
  const settings = {
    DATA_DIR: join(folder, 'data'),
    API_KEYS_FILE: file('keys.json', { keys: [key] }),
    RESOURCES_FILE: file('resources.json', { resources: { items: { editions: {} } } }),
  };
  const none = await doctor([], { DATA_DIR: settings.DATA_DIR });
  assert.doesNotMatch(none.text, /edition/);
  const right = await doctor([], settings);
  assert.ok(promises(right.ok).includes('files of editions can be stored'), right.text);
  assert.match(
    right.unseen.join('\n'),
    /editions of \/items are for each key that may stream it - .* the key acme opens only some rows, so it gets 403/,
  );
  assert.ok(!existsSync(settings.DATA_DIR), 'nothing is written');
  const wrong = await doctor([], { ...settings, FILES: `file://${settings.API_KEYS_FILE}` });
  assert.ok(promises(wrong.fail).includes('files of editions can be stored'), wrong.text);

  const mongod = await mongodWithUsers(t);
  if (!mongod) return;
  await mongod.add('reader', { role: 'read', db: 'shop' });
  await mongod.root.db('shop').createCollection('orders');
  const orders = {
    editions: { formats: ['parquet'] },
    fields: { total: 'decimal', 'a.b': 'string', 'x y': 'string' },
  };
  const RESOURCES_FILE = file('orders.json', { resources: { orders } });
  const reader = await doctor([mongod.as('reader')], { RESOURCES_FILE });
  for (const promise of [
    'files of editions can be stored',
    'editions can be made and leased',
    '/orders has the changes that its editions are made of',
  ])
    assert.ok(promises(reader.fail).includes(promise), `${promise}\n${reader.text}`);
  assert.match(reader.text, /user lacks insert, update, remove on shop\.editions/);
  assert.match(
    reader.unseen.join('\n'),
    /the table of \/orders has a column for each declared field - .*values of a\.b, x y stand in _rest/,
  );
});

test('a bucket is proved by a file that is put, put only if there is none, read, listed and removed', async (t) => {
  const store = await Seaweed.start(t);
  if (!store) return;
  const settings = { DATA_DIR: await temporaryFolder(t), FILES: await newFiles(store) };
  const right = await doctor([], { ...settings, ...ADMIN });
  for (const promise of [
    'files of exports can be stored in the bucket',
    'a file is stored only if there is none',
    'files can be read by ranges',
    'files can be listed',
    'what a killed server leaves is found and removed',
    'files can be removed',
  ])
    assert.ok(promises(right.ok).includes(promise), `${promise}\n${right.text}`);
  assert.deepEqual(await keysAt(t, settings.FILES)(), []);
  const readOnly = await doctor([], { ...settings, ...READER });
  assert.ok(promises(readOnly.fail).includes('files of exports can be stored in the bucket'), readOnly.text);
  assert.match(readOnly.text, /FAIL .*PutObject: 403 AccessDenied/);
  const missing = await doctor([], {
    ...settings,
    ...ADMIN,
    FILES: filesAt('there-is-none', store.endpoint),
  });
  assert.match(missing.text, /FAIL .*PutObject: 404 NoSuchBucket/);
});
