/** What became of bytes on the disk is told: a store with damaged bytes gives the rows that were written, or an error. */
import assert from 'node:assert/strict';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AppError } from '../../../src/errors.ts';
import { ITEM_COLLECTION } from '../../../src/resources/item-collection.ts';
import { Int32 } from '../../../src/store/bson.ts';
import { BSON_RANK } from '../../../src/store/bson-types.ts';
import { Slots } from '../../../src/store/slots.ts';
import { DatabaseSync } from '../../../src/sqlite.ts';
import { FILE } from '../../../src/store/sqlite/file.ts';
import { openSqlite } from '../../../src/store/sqlite.ts';
import type { FeedPlace } from '../../../src/store/change-feed.ts';
import type { Plan, Store } from '../../../src/store/store.ts';
import { feedOf, keysSince } from '../../support/changes.ts';
import { inCategory, expectedItems, makeItem, makeItems, type Item } from '../../support/items.ts';
import { below, randomFrom } from '../../support/random-collection.ts';
import { NEVER, PLENTY, readRows } from '../../support/reading.ts';
import { testDirectory } from '../../support/sqlite.ts';

const PLANS: readonly Plan[] = [
  { sort: '_id', direction: 1 },
  { sort: 'price', direction: -1 },
  { sort: 'price', direction: 1, ...inCategory('b') },
];
const SIZE = { rows: 40, bytes: PLENTY };
/** How many bytes are flipped, each in a store of its own: in the long form all of them. */
const DAMAGES = Number(process.env.DAMAGES ?? (process.env.LONG ? Infinity : 60));
/** Few rows in small pages: each b-tree has a root and leaves in a file of about 23,000 bytes. */
const ROWS = 36;
const PAGE_BYTES = 512;

/** A closed store with these items. */
async function filled(t: TestContext, items: readonly Item[]): Promise<string> {
  const directory = await testDirectory(t);
  const store = await openSqlite({ items: ITEM_COLLECTION, directory, slots: new Slots() });
  await store.items.insert(
    items.map(({ bytes }) => bytes),
    'fail',
  );
  await store.close();
  return directory;
}

/** All rows of a plan, read in batches that end where the store says. */
async function walk(
  items: Awaited<ReturnType<typeof openSqlite>>['items'],
  plan: Plan,
  size = SIZE,
): Promise<Buffer[]> {
  const rows: Buffer[] = [];
  for (let after: Parameters<typeof readRows>[2]['after'], more = true; more;) {
    const batch = await readRows(items, plan, after ? { after } : {}, size);
    rows.push(...batch.rows);
    [after, more] = [batch.last ?? undefined, batch.more];
  }
  return rows;
}

test('a row with a flipped bit is an error, and /readyz tells it from then on, while other rows are read', async (t) => {
  const rows = [1, 2, 3].map((n) => makeItem(new Int32(n), 'a', new Int32(n), `filler ${n} of a row`));
  const directory = await filled(t, rows);
  const file = await readFile(join(directory, FILE));
  const at = file.indexOf('filler 2 of a row');
  file[at] = (file[at] ?? 0) ^ 1;
  await writeFile(join(directory, FILE), file);
  const warnings: string[] = [];
  const onWarning = (message: string) => warnings.push(message);
  const store = await openSqlite({ items: ITEM_COLLECTION, directory, slots: new Slots(), onWarning });
  t.after(() => store.close());
  await store.ping();
  const unfit = (error: unknown) => error instanceof AppError && error.code === 'store-unfit';
  await assert.rejects(walk(store.items, { sort: '_id', direction: 1 }), unfit);
  await assert.rejects(store.ping(), unfit);
  assert.match(warnings.join(), /the file of the store is damaged: row 1 of a batch .*restore a backup/);
  const first = await readRows(store.items, { sort: '_id', direction: 1 }, {}, { rows: 1, bytes: PLENTY });
  assert.deepEqual(first.rows, [rows[0]?.bytes]);
});

test("entries of the index of ids that name each other's rows, or one row twice, end walks in both directions", async (t) => {
  const ids = ['d', 'a', 'c', 'b', 'f', 'e', 'h', 'g']; // not in their order, which rows are walked in without the index
  const directory = await filled(
    t,
    ids.map((id, n) => makeItem(id, 'a', new Int32(n))),
  );
  const whole = await readFile(join(directory, FILE));
  /** Where the entry of an id has the number of its row. */
  const entryOf = (id: string): number => {
    const key = Uint8Array.of(BSON_RANK.string, ...Buffer.from(id), 0, 0);
    return whole.indexOf(Buffer.concat([key, Uint8Array.of(ids.indexOf(id) + 1)])) + key.length;
  };
  const [e, f] = [entryOf('e'), entryOf('f')];
  for (const numbers of [
    { [e]: whole[f], [f]: whole[e] },
    { [e]: whole[f], [f]: whole[f] },
    { [e]: whole[entryOf('g')] },
  ]) {
    const place = await testDirectory(t);
    await copyFile(join(directory, 'sluice.mark'), join(place, 'sluice.mark'));
    await writeFile(join(place, FILE), Object.assign(Buffer.from(whole), numbers));
    const store = await openSqlite({ items: ITEM_COLLECTION, directory: place, slots: new Slots() });
    for (const direction of [1, -1] as const)
      for (const rows of [1, 2, 40])
        await assert.rejects(
          walk(store.items, { sort: '_id', direction, ids: {} }, { rows, bytes: PLENTY }),
          (error: unknown) => error instanceof AppError && error.code === 'store-unfit',
          `${JSON.stringify(numbers)}, ${direction}, ${rows} rows at once`,
        );
    await store.close();
  }
});

/** The ids of the rows that the log of changes tells. */
async function logged({ items }: Store, { token }: FeedPlace): Promise<string[]> {
  const feed = feedOf(items);
  return (await keysSince(feed, { token }, 50)).keys.map((key) => Buffer.from(key).toString('hex')).sort();
}

/** A file with other bytes than were written, and where they are. */
interface Damage {
  readonly where: string;
  readonly file: Buffer;
}

/** One bit of each of so many bytes, which are all bytes when there are no more. */
function* flips(whole: Buffer, most: number): Generator<Damage> {
  const random = randomFrom(1);
  const bytes = Math.min(most, whole.length);
  for (let n = 0; n < bytes; n++) {
    const at = bytes === whole.length ? n : below(random, whole.length);
    const bit = 1 << below(random, 8);
    const file = Buffer.from(whole);
    file[at] = (file[at] ?? 0) ^ bit;
    yield { where: `bit ${bit} of byte ${at % PAGE_BYTES} of page ${Math.floor(at / PAGE_BYTES) + 1}`, file };
  }
}

/** Each page, which is a sector of a disk, full of zeros; and the file cut there. */
function* lostPages(whole: Buffer): Generator<Damage> {
  for (let at = 0; at < whole.length; at += PAGE_BYTES) {
    const page = at / PAGE_BYTES + 1;
    yield { where: `page ${page} is zeros`, file: Buffer.from(whole).fill(0, at, at + PAGE_BYTES) };
    yield { where: `cut before page ${page}`, file: Buffer.from(whole.subarray(0, at)) };
  }
}

function* damagesOf(whole: Buffer): Generator<Damage> {
  yield* lostPages(whole);
  yield* flips(whole, DAMAGES);
}

test('a store with a flipped bit, a page of zeros or a cut gives the rows that were written or an error', async (t) => {
  const items = makeItems(ROWS);
  const expected = PLANS.map((plan) => expectedItems(items, plan).map(({ bytes }) => bytes));
  const directory = await testDirectory(t);
  const made = new DatabaseSync(join(directory, FILE));
  made.exec(`pragma page_size=${PAGE_BYTES}; pragma journal_mode=wal; create table a(b); drop table a`);
  made.close();
  const store = await openSqlite({ items: ITEM_COLLECTION, directory, slots: new Slots() });
  const from = await feedOf(store.items).now(NEVER);
  await store.items.insert(
    items.map(({ bytes }) => bytes),
    'fail',
  );
  const changes = await logged(store, from);
  await store.close();
  const whole = await readFile(join(directory, FILE));
  assert.equal(whole.readUInt16BE(16), PAGE_BYTES);
  const seen = { right: 0, told: 0 };
  const damaged = await testDirectory(t);
  for (const { where, file } of damagesOf(whole)) {
    const place = join(damaged, 'store');
    await mkdir(place);
    await copyFile(join(directory, 'sluice.mark'), join(place, 'sluice.mark'));
    await writeFile(join(place, FILE), file);
    const told = await useDamaged(place, where);
    await rm(place, { recursive: true });
    seen[told ? 'told' : 'right']++;
  }
  t.diagnostic(`${seen.right} damaged stores were right, ${seen.told} told it, of ${whole.length} bytes`);

  /** Whether reads tell the damage. Rejects when something else is read than what was written. */
  async function useDamaged(place: string, where: string): Promise<boolean> {
    let opened: Store;
    try {
      opened = await openSqlite({ items: ITEM_COLLECTION, directory: place, slots: new Slots() });
    } catch (error) {
      assert.ok(error instanceof Error);
      return true;
    }
    const asAppError = (error: unknown) => {
      assert.ok(error instanceof AppError, `${where}: ${String(error)}`);
      return null;
    };
    let told = 0;
    for (const [index, plan] of PLANS.entries()) {
      const rows = await walk(opened.items, plan).catch(asAppError);
      if (rows === null) told++;
      else assert.deepEqual(rows, expected[index], `${where}, ${JSON.stringify(plan)}`);
    }
    const read = await logged(opened, from).catch(asAppError);
    if (read === null) told++;
    else assert.deepEqual(read, changes, `${where}, changes`);
    await opened.close().catch(() => undefined);
    return told > 0;
  }
});

test('a set whose record is lost is damage, and its rows are kept', async (t) => {
  const directory = await filled(t, makeItems(ROWS));
  const file = () => new DatabaseSync(join(directory, FILE));
  const tables = () => {
    const opened = file();
    const found = opened.prepare("select name from sqlite_schema where type = 'table' order by name").all();
    opened.close();
    return found.map(({ name }) => String(name));
  };
  const before = tables();
  const spoilt = file();
  spoilt.exec("delete from sets where name = 'items'");
  spoilt.close();
  await assert.rejects(openSqlite({ items: ITEM_COLLECTION, directory, slots: new Slots() }), {
    code: 'store-unfit',
    message: /damaged/,
  });
  assert.deepEqual(tables(), before);
});
