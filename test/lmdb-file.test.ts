import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { open } from 'lmdb';
import { numberRange } from '../src/store/number-range.ts';
import { AppError } from '../src/errors.ts';
import { makeBookmark } from '../src/store/bookmark.ts';
import { Decimal128, Double, Int32, Long } from '../src/store/bson.ts';
import { FILE, openLmdb } from '../src/store/lmdb.ts';
import { Slots } from '../src/store/slots.ts';
import { NAMES } from '../src/store/lmdb/tables.ts';
import { countBytes } from '../src/store/lmdb/write.ts';
import type { Plan } from '../src/store/store.ts';
import { childProgram } from './support/child-program.ts';
import { expectedItems, inCategory, makeItem, makeItems, type Item } from './support/items.ts';
import { openRaw, testDirectory } from './support/lmdb.ts';
import { NEVER, PLENTY, assertChain, readRows } from './support/reading.ts';

const BY_ID = { sort: '_id', direction: 1 } as const;
const SIZE = { rows: 1000, bytes: PLENTY };
const bytesOf = (items: readonly { bytes: Buffer }[]) => items.map(({ bytes }) => bytes);

test('written rows are there and counted when the store is opened again', async (t) => {
  const directory = join(await testDirectory(t), 'made', 'when missing');
  const items = makeItems(50);
  for (const end of [20, 50]) {
    const store = await openLmdb({ directory, slots: new Slots() });
    await store.items.insert(bytesOf(items.slice(0, end)), end === 20 ? 'fail' : 'replace');
    await store.ping();
    assert.equal((await readRows(store.items, BY_ID, {}, SIZE)).rows.length, end);
    await store.close();
    const file = openRaw(directory);
    assert.deepEqual([file.count(), file.faults()], [end, []]);
    await file.close();
  }
});

test('one call is written completely, however many transactions it takes', async (t) => {
  const directory = await testDirectory(t);
  const store = await openLmdb({ directory, slots: new Slots(), transactionRows: 7 });
  t.after(() => store.close());
  const items = makeItems(100);
  const calls = [items.slice(0, 40), items.slice(20, 70), items.slice(60)];
  const results = await Promise.all(calls.map((rows) => store.items.insert(bytesOf(rows), 'skip')));
  assert.deepEqual(
    results.map(({ written, skipped }) => [written, skipped]),
    [
      [40, 0],
      [30, 20],
      [30, 10],
    ],
  );
  const file = openRaw(directory);
  t.after(() => file.close());
  assert.deepEqual([file.count(), file.faults()], [100, []]);
});

test('a closed store has written what it accepted, and rejects every later call as unavailable', async (t) => {
  const store = await openLmdb({ directory: await testDirectory(t), slots: new Slots() });
  const { bytes, id } = makeItem('a', 'b', new Int32(1));
  const inserting = store.items.insert([bytes], 'fail');
  await store.close();
  assert.equal((await inserting).written, 1);
  const unavailable = (error: unknown) => error instanceof AppError && error.code === 'store-unavailable';
  await assert.rejects(store.ping(), unavailable);
  await assert.rejects(store.items.read(BY_ID, {}, SIZE, NEVER), unavailable);
  await assert.rejects(store.items.get(makeBookmark({ _id: id }), NEVER), unavailable);
  await assert.rejects(store.items.insert([bytes], 'fail'), unavailable);
});

test('a write by another process is seen by the next read', async (t) => {
  const directory = await testDirectory(t);
  const store = await openLmdb({ directory, slots: new Slots() });
  t.after(() => store.close());
  const first = makeBookmark({ _id: new Int32(999_995) });
  assert.equal(await store.items.get(first, NEVER), null);
  // All in one turn of the event loop, during which lmdb would keep its snapshot.
  const said = execFileSync(process.execPath, [...childProgram('lmdb-writer.ts'), directory, '1', '1'], {
    encoding: 'utf8',
  });
  assert.match(said, /^999995$/m);
  const found = await store.items.get(first, NEVER);
  assert.equal(found?.rows, 1);
  found.release();
  const { rows } = await readRows(store.items, BY_ID, {}, SIZE);
  assert.equal(rows.length, new Set(said.trim().split(/\s/)).size);
});

test('a directory that cannot be written to is reported', async (t) => {
  const directory = await testDirectory(t);
  await writeFile(join(directory, 'a file'), '');
  await assert.rejects(
    openLmdb({ directory: join(directory, 'a file', 'data'), slots: new Slots() }),
    /DATA_DIR must be a directory that this process can write to: .*a file/,
  );
});

test('a directory that cannot be created is refused at once, and two opens can create the same directory', async (t) => {
  if (process.platform === 'linux')
    await assert.rejects(
      openLmdb({ directory: '/proc/sluice/data', slots: new Slots() }),
      /DATA_DIR must be a directory that this process can write to: ENOENT.*\/proc\/sluice/,
    );
  const directory = await testDirectory(t);
  await writeFile(join(directory, 'file'), '');
  await assert.rejects(
    openLmdb({ directory: join(directory, 'file'), slots: new Slots() }),
    /DATA_DIR must be a directory that this process can write to: .*file is not a directory/,
  );
  const deep = join(directory, 'a', 'b', 'c');
  const stores = await Promise.all(
    [deep, deep].map((place) => openLmdb({ directory: place, slots: new Slots() })),
  );
  await Promise.all(stores.map((store) => store.close()));
});

test('a truncated file is refused and left unchanged', async (t) => {
  const directory = await testDirectory(t);
  const store = await openLmdb({ directory, slots: new Slots() });
  await store.items.insert(bytesOf(makeItems(10_000)), 'fail');
  await store.close();
  const whole = await readFile(join(directory, FILE));
  await writeFile(join(directory, FILE), whole.subarray(0, whole.length - 300 * 4096));
  await assert.rejects(openLmdb({ directory, slots: new Slots() }), /it is truncated to \d+ bytes/);
  await writeFile(join(directory, FILE), whole);
  const again = await openLmdb({ directory, slots: new Slots() });
  assert.equal((await readRows(again.items, BY_ID, {}, SIZE)).rows.length, 1000);
  await again.close();
});

test('a foreign file is refused and left unchanged', async (t) => {
  const foreign = await testDirectory(t);
  const other = open({ path: join(foreign, FILE), noSubdir: true });
  other.openDB({ name: 'their own' }).putSync('a', 1);
  await other.close();
  await assert.rejects(
    openLmdb({ directory: foreign, slots: new Slots() }),
    /another program \(its databases are their own\)/,
  );

  const newer = await testDirectory(t);
  await (await openLmdb({ directory: newer, slots: new Slots() })).close();
  const file = openRaw(newer);
  file.meta.putSync(Buffer.from('format'), Buffer.from('sluice items 99'));
  await file.close();
  await assert.rejects(
    openLmdb({ directory: newer, slots: new Slots() }),
    /has the format "sluice items 99"/,
  );

  const old = Buffer.alloc(20_000);
  old.writeUInt32LE(0xbeefc0de, 24);
  old.writeUInt32LE(1, 28);
  const faults: [bytes: Buffer, reason: RegExp][] = [
    [Buffer.alloc(20_000, 'no LMDB'), /not an LMDB file/],
    [Buffer.from('short'), /not an LMDB file/],
    [old, /data format is 1/],
  ];
  for (const [bytes, reason] of faults) {
    const directory = await testDirectory(t);
    await writeFile(join(directory, FILE), bytes);
    await assert.rejects(openLmdb({ directory, slots: new Slots() }), reason);
    assert.deepEqual(await readFile(join(directory, FILE)), bytes);
  }
});

/** The key of a number in files of version 0.1: the nearest double and an int64's difference from it. */
function keyOf01(price: Int32 | Double | Long): Buffer {
  const nearest = Number(price.toString());
  const key = Buffer.alloc(11);
  key[0] = 10;
  key.writeDoubleBE(nearest + 0, 1);
  if (nearest < 0) for (let at = 1; at < 9; at++) key[at] = ~(key[at] ?? 0);
  else key[1] = (key[1] ?? 0) ^ 0x80;
  key.writeUInt16BE(0x8000 + (price instanceof Long ? Number(price.toBigInt() - BigInt(nearest)) : 0), 9);
  return key;
}

test('a file of version 0.1 is read, accepts decimals as prices, and is refused by earlier versions from then on', async (t) => {
  const directory = await testDirectory(t);
  const old = [
    ...[-1e300, -0.5, -0, 0.1, 19.99, 1e300].map((price) => new Double(price)),
    ...['-9007199254740993', '9007199254740993', '9223372036854775807'].map((digits) =>
      Long.fromString(digits),
    ),
    new Int32(20),
  ].map((price, n) => makeItem(new Int32(n), 'a', price));
  const root = open({
    path: join(directory, FILE),
    noSubdir: true,
    encoding: 'binary',
    keyEncoding: 'binary',
    maxDbs: 16,
  });
  const table = (name: keyof typeof NAMES) =>
    root.openDB<Uint8Array, Uint8Array>({ name: NAMES[name], encoding: 'binary', keyEncoding: 'binary' });
  const category = Buffer.from('\u000fa\0\0');
  await root.transaction(() => {
    for (const { id, price, bytes } of old) {
      const [idKey, priceKey] = [keyOf01(id as Int32), keyOf01(price as Double)];
      table('items').putSync(idKey, bytes);
      table('byPrice').putSync(Buffer.concat([priceKey, idKey]), Buffer.alloc(0));
      table('byCategory').putSync(Buffer.concat([category, idKey]), Buffer.alloc(0));
      table('byCategoryPrice').putSync(Buffer.concat([category, priceKey, idKey]), Buffer.alloc(0));
    }
    table('meta').putSync(Buffer.from('format'), Buffer.from('sluice items 1'));
    table('meta').putSync(Buffer.from('items'), Buffer.from(countBytes(old.length)));
  });
  await root.close();

  const formatOf = async () => {
    const file = openRaw(directory);
    try {
      assert.deepEqual(file.faults(), []);
      return String(file.meta.get(Buffer.from('format')));
    } finally {
      await file.close();
    }
  };
  const readBy = async (plan: Plan, items: readonly Item[]) => {
    const store = await openLmdb({ directory, slots: new Slots() });
    try {
      for (const rows of [1, 3, 1000])
        await assertChain(store.items, plan, {}, { rows, bytes: PLENTY }, expectedItems(items, plan));
    } finally {
      await store.close();
    }
  };
  const plans = [1, -1].flatMap((direction): Plan[] => [
    { sort: 'price', direction: direction as 1 | -1 },
    { sort: 'price', direction: direction as 1 | -1, ...inCategory('a'), range: numberRange('-0.5', '20') },
  ]);
  for (const plan of plans) await readBy(plan, old);
  assert.equal(await formatOf(), 'sluice items 4'); // earlier versions know 1 to 3, and would write no log of changes
  const digits = ['19.99', '-1E+6000', '9007199254740993.5', '9223372036854775807.5', '0.10', '-0.5'];
  const added = digits.map((text, n) => makeItem(new Int32(100 + n), 'a', Decimal128.fromString(text)));
  const store = await openLmdb({ directory, slots: new Slots() });
  assert.equal((await store.items.insert(bytesOf(added), 'fail')).written, added.length);
  await store.close();
  for (const plan of plans) await readBy(plan, [...old, ...added]);
  assert.equal(await formatOf(), 'sluice items 4');
});
