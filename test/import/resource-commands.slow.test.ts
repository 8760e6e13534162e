import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { serve, shopOn } from '../support/import/shop.ts';
import { sluice } from '../support/process/commands.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn, type StoreName } from '../support/process/server.ts';

/** As a spreadsheet in Germany saves it: a byte order mark, semicolons, decimal commas, CRLF. */
const SPREADSHEET =
  '\ufeffArtikel;Straße;Preis;PLZ;Kunde.Land;angelegt\r\n' +
  '0815;"Höhe; 5";1.234,56;01234;DE;2024-03-01\r\n' +
  '4711;Gasse;12,9;12345;NL;2024-03-02\r\n';
const ORDERS =
  '{"_id":1,"id":"own","status":"paid","total":5,"tags":["a"]}\n' +
  '{"_id":2,"status":"new","total":7}\n' +
  '{"_id":3,"status":"paid","total":2.5}\n';

for (const name of ['sqlite', 'mongodb'] satisfies StoreName[])
  describe(`resources made by commands, on ${name}`, () => {
    test('a spreadsheet becomes a resource with its own columns, and is served by the indexes it was given', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const file = await shop.file('artikel.csv', SPREADSHEET);
      const reading = ['--id', 'Artikel', '--decimal-comma', '--type', 'angelegt=date'];
      const indexes = ['--index', 'Kunde.Land,Preis', '--index', 'angelegt'];
      const { code, said } = await sluice(
        ['import', file, '--into', 'artikel', ...reading, ...indexes],
        shop.environment,
      );
      assert.equal(code, 0, said);
      assert.match(said, /^created the (resource|collection) .*artikel\n/);
      assert.match(said, /created the index Kunde\.Land_1_Preis_1__id_1\n/);
      assert.match(said, / {2}PLZ: string .*\n.*\n {2}angelegt: date\n/);
      assert.match(said, /GET \/artikel answers: .*Kunde\.Land with sort=Preis.*sort=angelegt/);
      assert.match(
        said,
        name === 'sqlite' ? /to serve it: npm start/ : /to serve it: EXPOSE=artikel npm start/,
      );
      const server = await serve(t, shop, 'artikel');
      const answer = await server.get('/artikel?Kunde.Land=DE&sort=Preis_asc');
      assert.deepEqual(((await answer.json()) as { data: unknown }).data, [
        {
          id: '0815',
          Straße: 'Höhe; 5',
          Preis: 1234.56,
          PLZ: '01234',
          Kunde: { Land: 'DE' },
          angelegt: '2024-03-01T00:00:00.000Z',
        },
      ]);
    });

    test('a file becomes the resource of its name, as the first line says', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const run = (...args: string[]) => sluice(['import', ...args], shop.environment);
      const served = name === 'sqlite' ? '' : ', which EXPOSE=stock serves';
      const file = await shop.file('stock.csv', 'id,category\n1,a\n');
      const first = await run(file);
      assert.equal(first.code, 0, first.said);
      const line = (verb: string) =>
        `"stock.csv" ${verb} the resource /stock${served}; --into NAME chooses another`;
      assert.equal(first.said.split('\n')[0], line('becomes'));
      await shop.file('stock.csv', 'id,category\n2,b\n');
      assert.equal((await run(file)).said.split('\n')[0], line('goes into'));
      const server = await serve(t, shop, 'stock');
      const rows = await (await server.get('/stock/stream')).text();
      assert.equal(rows, '{"id":1,"category":"a"}\n{"id":2,"category":"b"}\n');
      const items = await run(await shop.file('items.ndjson', '{"_id":1,"category":"c"}\n'));
      assert.match(
        items.said,
        /^"items.ndjson" goes into the resource \/items; .*\nline 1: price is missing/,
      );
      const users = await run(await shop.file('users.csv', 'id\n1\n'));
      assert.deepEqual([users.code, /choose another name with --into$/m.test(users.said)], [2, true]);
    });

    test('a repeated import fails, skips or replaces, and --drop replaces all rows', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const file = await shop.file('orders.ndjson', ORDERS);
      const run = (...args: string[]) =>
        sluice(['import', file, '--into', 'orders', ...args], shop.environment);
      assert.equal((await run('--index', 'status,total')).code, 0);
      const again = await run();
      assert.deepEqual([again.code, again.said.includes('3 failed')], [1, true], again.said);
      await shop.file('orders.ndjson', ORDERS.replace('"new","total":7', '"new","total":8'));
      assert.equal((await run('--on-conflict', 'replace')).code, 0);
      await shop.file('orders.ndjson', '{"_id":4,"status":"new","total":1}\n{"_id":5}\n');
      assert.match(
        (await run('--drop')).said,
        /--drop removes (about )?3 rows from orders in .*: confirm it with --yes/,
      );
      const dropped = await run('--drop', '--yes');
      assert.match(dropped.said, /^removed 3 rows from orders in /);
      const server = await serve(t, shop, 'orders');
      assert.equal(
        await (await server.get('/orders/stream')).text(),
        '{"id":4,"status":"new","total":1}\n{"id":5}\n',
      );
      assert.equal(
        await (await server.get('/orders/stream?status=new&sort=total_asc')).text(),
        '{"id":4,"status":"new","total":1}\n',
      );
    });

    test('a second run without a key is refused, and a file without a good row makes nothing', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const file = await shop.file('stock.csv', 'sku,amount\na,1\nb,2\n');
      const run = (...args: string[]) => sluice(['import', ...args], shop.environment);
      const empty = await run(await shop.file('empty.csv', 'sku,amount\n'), '--into', 'stock');
      assert.deepEqual([empty.code, empty.said.includes('nothing was made')], [0, true], empty.said);
      assert.match((await sluice(['init'], shop.environment)).stdout, /"resources": \{\}/);
      const first = await run(file, '--into', 'stock');
      assert.match(first.said, /\nrows without a key of their own: 2\. Another run adds them once more/);
      const second = await run(file, '--into', 'stock');
      assert.match(second.said, /^sluice: .*stock.* has (about )?2 rows already.* --append adds/);
      assert.equal(second.code, 2);
      assert.match((await run(file, '--into', 'stock', '--append')).said, /2 rows read, 2 written/);
      assert.match((await run(file, '--into', 'stock', '--drop', '--yes')).said, /^removed (about )?4 rows/);
    });

    test('a later file is read as the kinds that the fields have, or refused', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const run = async (rows: string, ...args: string[]) =>
        sluice(
          ['import', await shop.file('a.csv', `sku,PLZ,Preis,am,n\n${rows}`), '--into', 'a', ...args],
          shop.environment,
        );
      const first = await run(
        '01,01234,1.50,2026-01-01,5\n',
        '--id',
        'sku',
        '--type',
        'Preis=decimal,am=date',
      );
      assert.equal(first.code, 0, first.said);
      const later = await run('2,10115,2.50,2026-02-01,6\n', '--id', 'sku');
      assert.match(later.said, /sku: _id, string, as in the rows that are stored\n {2}PLZ: string, as in/);
      assert.match(later.said, /Preis: decimal, as in .*\n {2}am: date, as in .*\n {2}n: number\n/);
      const other = await run('3,1,1,2026-03-01,5\n4,1,1,2026-03-01,05\n', '--id', 'sku');
      assert.match(other.said, /^line 3: column "n": "05" is not a number\n/m);
      assert.match(other.said, /n: number, as in .*\n.*2 rows read, 1 written, 1 failed/);
      const texts = await run('3,1,1,2026-03-01,05\n', '--id', 'sku', '--type', 'n=string');
      assert.match(texts.said, /n: string\n/);
      const anew = await run('1,2,3,x,y\n', '--id', 'sku', '--drop', '--yes');
      assert.match(anew.said, /PLZ: number\n {2}Preis: number\n {2}am: string \(/);
    });

    test("an index is added later, and a document's own id stays beside its key", async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const file = await shop.file('orders.ndjson', ORDERS);
      const run = (...args: string[]) => sluice(args, shop.environment);
      assert.equal((await run('import', file, '--into', 'orders')).code, 0);
      const added = await run('index', 'orders', 'status,total');
      assert.equal(added.code, 0, added.said);
      assert.match(
        added.said,
        /GET \/orders answers: .*status with sort=total_asc; status, total with sort=id_asc\n/,
      );
      const twice = await run('index', 'orders', 'status,total,_id');
      assert.deepEqual([twice.code, twice.said.includes('already')], [2, true], twice.said);
      const arrays = await run('index', 'orders', 'tags');
      assert.deepEqual([arrays.code, /cannot be used: .*array/.test(arrays.said)], [1, true], arrays.said);
      const server = await serve(t, shop, 'orders');
      assert.equal(
        await (await server.get('/orders/stream?status=paid&sort=total_desc')).text(),
        '{"_id":1,"id":"own","status":"paid","total":5,"tags":["a"]}\n{"id":3,"status":"paid","total":2.5}\n',
      );
      assert.equal((await server.get('/orders?sort=tags_asc')).status, 400);
    });

    test('init prints a file of resources that a server takes unchanged', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const file = await shop.file('orders.ndjson', ORDERS);
      const run = (...args: string[]) => sluice(args, shop.environment);
      await run('import', file, '--into', 'orders', '--index', 'status,total');
      await run('import', file, '--into', 'customers');
      if (name === 'mongodb') {
        const database = testClient(t, shop.environment.MONGODB_URI ?? '').db();
        await database.createCollection('big', { viewOn: 'orders', pipeline: [] });
        await database.createCollection('my orders');
        await database.collection('customers').createIndex({ total: 1 });
        await database.collection('orders').createIndex({ tags: 1 }); // it warns of the arrays there
      }
      const { code, stdout, said } = await sluice(['init'], { ...shop.environment, LOG_LEVEL: 'info' });
      assert.equal(code, 0, said);
      const file2 = JSON.parse(stdout) as { $schema: string; resources: Record<string, unknown> };
      const expected = { orders: { indexes: [['status', 'total']] }, customers: {} };
      const odd = name === 'mongodb' ? { 'my-orders-rows': { collection: 'my orders' } } : {};
      assert.deepEqual(file2.resources, { ...expected, ...odd });
      const schema = JSON.parse(await readFile(fileURLToPath(file2.$schema), 'utf8')) as { title?: string };
      assert.deepEqual(schema, JSON.parse(await readFile('docs/resources.schema.json', 'utf8')));
      if (name === 'mongodb') {
        assert.match(said, /^big is left out: it is a view, not a collection;/m);
        const [, line = ''] = /^customers: the index total_1 lacks _id, .*; make (.*)$/m.exec(said) ?? [];
        assert.match(
          line,
          /^db\.getSiblingDB\(".*"\)\.getCollection\("customers"\)\.createIndex\(\{"total":1,"_id":1\}\)$/,
        );
      }
      const server = await serverOn(t, {
        ...shop.environment,
        RESOURCES_FILE: await shop.file('resources.json', stdout),
      });
      assert.equal((await server.get('/orders?status=paid&sort=total_asc')).status, 200);
      assert.equal((await server.get('/customers')).status, 200);
    });
  });

const FAULTS: [args: string[], message: RegExp][] = [
  [['import', 'a.csv', '--into', 'items', '--index', 'a'], /items has the indexes of its declaration/],
  [['import', 'a.csv', '--into', 'livez'], /taken by a route/],
  [
    ['import', 'a.csv', '--into', 'users'],
    /the collection users has the users of the API .*POST \/api\/users, .* with --into$/m,
  ],
  [['import', 'a.csv', '--into', 'a b'], /cannot be a segment of a URL/],
  [['import', '--sample', '--index', 'a'], /--index applies only to FILE/],
  [['import', 'a.csv', '--into', 'o', '--force'], /--force applies only to --index/],
  [['imprt', 'a.csv'], /unknown command imprt$/m],
  [['import', 'a.csv', '--into', 'o', '--price', 'p'], /--price applies only to --into items/],
  [['import', '--generate', '5', '--into', 'o'], /--into applies only to FILE/],
  [['import', 'a.csv', '--into', 'o', '--index', 'a,,b'], /has an empty name/],
  [['import', 'a.csv', '--into', 'o', '--index', 'a.0'], /has a number in its path/],
  [['import', 'a.csv', '--into', 'o', '--index', 'a,b,a'], /is named twice/],
  [['import', 'a.csv', '--into', 'o', '--index', 'a', '--index', 'a,id'], /"a" is given twice/],
  [['index', 'orders'], /index takes a resource and the fields/],
  [['index', 'orders', Array.from({ length: 32 }, (_, n) => `f${n}`).join()], /at most 31 fields/],
  [['index', 'orders', 'id,a'], /is the key, which ends every index/],
  [['index', 'orders', '_id'], /every resource has an index of its key/],
  [['index', 'nowhere', 'a'], /there is no resource "nowhere": sluice init lists them/],
  [['init', 'now'], /init takes no arguments/],
];

test('a wrong command says why and exits with 2', async (t) => {
  const folder = await temporaryFolder(t);
  const ended = await Promise.all(
    FAULTS.map(([args], n) => sluice(args, { DATA_DIR: join(folder, String(n)) })),
  );
  for (const [n, [args, message]] of FAULTS.entries()) {
    assert.match(ended[n]?.said ?? '', message, args.join(' '));
    assert.equal(ended[n]?.code, 2, args.join(' '));
  }
});

test('an index of a field that no row has is refused before anything is made, with those there are', async (t) => {
  const shop = await shopOn(t, 'sqlite');
  if (!shop) return;
  const csv = await shop.file('a.csv', 'id,status,note\n1,new,\n');
  const json = await shop.file('a.ndjson', '{"id":1,"lines":[{"status":"new"}]}\n'.repeat(2_000));
  for (const [file, index, reason] of [
    [csv, 'statsu', 'no row has the field "statsu" of --index. The fields are: "_id", "status".'],
    [csv, 'note', 'no row has the field "note" of --index. The fields are: "_id", "status".'],
    [
      json,
      'lines.statsu',
      'none of the first 1,000 rows has the field "lines.statsu" of --index. The fields are: "_id", "lines.status".',
    ],
  ] as const) {
    const argv = ['import', file, '--into', 'o', '--index', index];
    const { code, said } = await sluice(argv, shop.environment);
    assert.deepEqual([code, said.includes(reason)], [2, true], said);
  }
  assert.match((await sluice(['init'], shop.environment)).stdout, /"resources": \{\}/);
  const argv = ['import', csv, '--into', 'o', '--index', 'statsu', '--force'];
  assert.match((await sluice(argv, shop.environment)).said, /created the index statsu_1__id_1/);
});

test('the manuals of the commands name their arguments', async () => {
  for (const command of ['import', 'index', 'init']) {
    const { code, stdout } = await sluice([command, '--help'], {});
    assert.deepEqual([code, stdout.includes(`sluice ${command}`)], [0, true]);
  }
});
