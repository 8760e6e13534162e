import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { parseImportArguments, runImport } from '../../src/import/command.ts';
import { importedInto } from '../../src/import/resource.ts';
import { BSON, Int32, Long } from '../../src/store/values/bson.ts';
import { serve, shopOn } from '../support/import/shop.ts';
import { sluice } from '../support/process/commands.ts';
import type { StoreName } from '../support/process/server.ts';
import { feedOf, keysSince } from '../support/store/changes.ts';
import { idIn } from '../support/store/following.ts';
import { testMongoStore } from '../support/store/mongo/mongo.ts';
import type { OpenStore } from '../support/store/open-store.ts';
import { BY_ID } from '../support/store/changes.ts';
import { NEVER, PLENTY, readRows } from '../support/store/reading.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { testsWith } from '../support/tests-with.ts';

const item = (n: number, price = n) => `{"_id":${n},"category":"a","price":${price}}\n`;
const many = (count: number, from = 0) => Array.from({ length: count }, (_, n) => item(from + n)).join('');

/** Runs an import of items in this process. */
async function run({ store }: OpenStore, content: string, ...options: string[]) {
  const stderr = new PassThrough({ encoding: 'utf8' });
  const stdin = Readable.from([Buffer.from(content)]);
  const io = { stdin, stderr, isTTY: false, place: 'the shop', signal: NEVER };
  const target = { exists: true, open: () => Promise.resolve(importedInto(store.items)) };
  const command = parseImportArguments(['-', '--into', 'items', '--format', 'ndjson', ...options]);
  const code = await runImport(command, target, io);
  return { code, said: String(stderr.read() ?? '') };
}

/** The rows by their ids, with their prices. */
async function pricesIn({ store }: OpenStore): Promise<Record<string, unknown>> {
  const { rows } = await readRows(store.items, BY_ID, {}, { rows: 10_000, bytes: PLENTY });
  return Object.fromEntries(
    rows.map((row) => BSON.deserialize(row)).map(({ _id, price }) => [String(_id), price as unknown]),
  );
}

for (const [name, open] of [
  ['sqlite', testSqlite],
  ['mongodb', testMongoStore],
] as const) {
  const syncTest = testsWith<OpenStore>(open, name);

  syncTest(
    'a sync writes what differs and removes what the file lacks, and followers read just that',
    async (opened) => {
      await run(opened, many(40));
      const feed = feedOf(opened.store.items);
      const { identity } = await opened.store.items.describe(NEVER);
      const place = await feed.now(NEVER);
      const content = many(38, 1).replace(item(7), item(7, 70)) + item(100);
      const { code, said } = await run(opened, content, '--sync');
      assert.equal(code, 0, said);
      assert.match(said, /the import finished: 39 rows read, 2 written, 37 unchanged, 2 removed\n/);
      const expected = Object.fromEntries(
        [...Array.from({ length: 38 }, (_, n) => n + 1), 100].map((n) => [n, n]),
      );
      assert.deepEqual(await pricesIn(opened), { ...expected, 7: 70 });
      const { keys } = await keysSince(feed, place);
      assert.deepEqual(keys.map(idIn).map(String).sort(), ['0', '100', '39', '7']);
      assert.equal((await opened.store.items.describe(NEVER)).identity, identity);
      const again = await run(opened, content, '--sync');
      assert.match(again.said, /39 rows read, 0 written, 39 unchanged, 0 removed\n/);
    },
  );

  syncTest(
    'a sync that would remove more than a tenth of the rows changes nothing without --yes',
    async (opened) => {
      await run(opened, many(30));
      const before = await pricesIn(opened);
      const content = many(26) + item(50);
      const { code, said } = await run(opened, content, '--sync');
      assert.equal(code, 2);
      assert.match(
        said,
        /^sluice: --sync would remove 4 of the 30 rows of the shop, which the file lacks: confirm it with --yes$/m,
      );
      assert.deepEqual(await pricesIn(opened), before);
      assert.match(
        (await run(opened, content, '--sync', '--yes')).said,
        /1 written, 26 unchanged, 4 removed/,
      );
      assert.deepEqual(Object.keys(await pricesIn(opened)).length, 27);
    },
  );

  syncTest('a sync of a file with bad rows, or that breaks off, removes nothing', async (opened) => {
    await run(opened, many(30));
    const bad = await run(opened, many(28) + item(50) + '{"_id":29,"category":"a","price":"x"}\n', '--sync');
    assert.equal(bad.code, 1);
    assert.match(
      bad.said,
      /^2 rows that the file lacks stay: 1 row of it cannot be read, and may be among them$/m,
    );
    assert.match(bad.said, /30 rows read, 1 written, 28 unchanged, 0 removed, 1 failed/);
    const before = await pricesIn(opened);
    assert.equal(Object.keys(before).length, 31);
    const broken = await run(opened, `[${many(5).trim().replaceAll('\n', ',')}`, '--sync', '--yes');
    assert.deepEqual([broken.code, await pricesIn(opened)], [1, before], broken.said);
    const empty = await run(opened, '', '--sync', '--yes');
    assert.deepEqual([empty.code, await pricesIn(opened)], [1, before], empty.said);
    assert.match(empty.said, /nothing was removed, because the source has no rows/);
  });

  syncTest(
    'a sync takes rows in any order, with keys of every type, and the first of two with one key',
    async (opened) => {
      const ids = [
        '"b"',
        '2',
        '{"$numberLong":"9007199254740993"}',
        '"a"',
        '-1',
        '{"$oid":"65a1b2c3d4e5f60718293a4b"}',
      ];
      const rows = ids.map((id, n) => `{"_id":${id},"category":"a","price":${n}}\n`);
      assert.match((await run(opened, rows.join(''), '--sync')).said, /6 written, 0 unchanged, 0 removed/);
      const [first = '', ...others] = rows;
      const twice = await run(
        opened,
        others.reverse().join('') + first + first.replace('"price":0', '"price":9'),
        '--sync',
      );
      assert.equal(twice.code, 1);
      assert.match(twice.said, /^line 7: an earlier row of the file has its _id$/m);
      assert.match(twice.said, /7 rows read, 0 written, 6 unchanged, 0 removed, 1 failed/);
      assert.equal((await pricesIn(opened)).b, 0);
    },
  );

  syncTest('an import whose keys are stored names the ways on', async (opened) => {
    await run(opened, many(3));
    const { said } = await run(opened, many(4));
    assert.match(
      said,
      /^3 rows not written, because the keys are stored, or come twice\. --sync writes the rows that differ .* --on-conflict replace writes those of the source, skip keeps the stored ones$/m,
    );
  });
}

test('a number of another type is the same key', async (t) => {
  const opened = await testSqlite(t);
  const rows = [new Int32(1), Long.fromNumber(2)].map((_id) =>
    BSON.serialize({ _id, category: 'a', price: 1 }),
  );
  await opened.store.items.insert(rows, 'fail');
  const { said } = await run(opened, item(1) + item(2, 1), '--sync');
  assert.match(said, /0 removed/);
  assert.deepEqual(await pricesIn(opened), { 1: 1, 2: 1 });
});

for (const name of ['sqlite', 'mongodb'] satisfies StoreName[])
  describe(`the second version of a file, on ${name}`, () => {
    test('a sync becomes what followers of the server read, whose cursors go on', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const csv = (count: number) =>
        `id,status,total\n${Array.from({ length: count }, (_, n) => `${n},new,${n === 3 ? count : n}\n`).join('')}`;
      const file = await shop.file('kunden.csv', csv(30));
      assert.equal((await sluice(['import', file, '--index', 'status,total'], shop.environment)).code, 0);
      const server = await serve(t, shop, 'kunden');
      const lines = async (query: string) => (await server.get(`/kunden/changes${query}`)).text();
      const [, since = ''] = /"cursor":"([^"]+)"/.exec(await lines('')) ?? [];
      await shop.file('kunden.csv', csv(29));
      const { code, said } = await sluice(['import', file, '--sync'], shop.environment);
      assert.deepEqual(
        [code, said.includes('29 rows read, 1 written, 28 unchanged, 1 removed')],
        [0, true],
        said,
      );
      const changes = await lines(`?since=${since}&wait=10`);
      assert.ok(changes.includes('{"id":3,"status":"new","total":29}\n'), changes);
      assert.ok(changes.includes('{"removed":{"id":29}}\n'), changes);
      assert.equal(changes.match(/^\{"(?:id|removed)"/gm)?.length, 2);
    });
  });

test('a sync needs keys', async (t) => {
  const shop = await shopOn(t, 'sqlite');
  if (!shop) return;
  const file = await shop.file('stock.csv', 'sku,amount\na,1\n');
  const { code, said } = await sluice(['import', file, '--sync'], shop.environment);
  assert.deepEqual([code, said.includes('--sync finds rows by their keys')], [2, true], said);
  const other = await sluice(['import', file, '--sync', '--drop'], shop.environment);
  assert.match(other.said, /--sync applies only to imports without --drop/);
});
