/** A store with damaged bytes on the disk gives the rows that were written, or an error, or the check in the background finds it. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../../../../src/base/errors.ts';
import { KEY } from '../../../../src/store/bookmark.ts';
import { Int32 } from '../../../../src/store/values/bson.ts';
import { KEY_INDEX } from '../../../../src/store/indexes.ts';
import { DatabaseSync } from '../../../../src/base/sqlite.ts';
import { FILE } from '../../../../src/store/sqlite/file/file.ts';
import { IntegrityCheck } from '../../../../src/store/sqlite/file/integrity.ts';
import { Looks } from '../../../../src/store/sqlite/file/looks.ts';
import type { FeedPlace } from '../../../../src/store/change-feed.ts';
import type { Plan } from '../../../../src/store/store.ts';
import { feedOf, keysSince } from '../../../support/store/changes.ts';
import {
  inCategory,
  expectedItems,
  makeItem,
  makeItems,
  type Item,
  insertItems,
} from '../../../support/store/items.ts';
import { below, randomFrom } from '../../../support/store/random-collection.ts';
import { NEVER, PLENTY, readRows, walk } from '../../../support/store/reading.ts';
import { SEED } from '../../../support/seed.ts';
import { openDirectory, openFor, openRaw } from '../../../support/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../../../support/directory.ts';
import type { StoreWithItems } from '../../../support/store/with-items.ts';

const PLANS: readonly Plan[] = [
  { sort: '_id', direction: 1 },
  { sort: 'price', direction: -1 },
  { sort: 'price', direction: 1, ...inCategory('b') },
];
const SIZES = [40, 5];
const ONE_ROW = { index: KEY_INDEX, sort: KEY, direction: 1 } as const;
/** How many rows are read by their ids. */
const SINGLES = 4;
/** How many bits are flipped, each in a store of its own: in the long form one of each byte. 184320: all. */
const DAMAGES = Number(process.env.DAMAGES ?? (process.env.LONG ? 23_040 : 50));
/** Of the other damages the short form has every fifth: some of each page and of each index. */
const EACH = process.env.LONG ? 1 : 5;
/** Few rows in small pages: each b-tree has a root and leaves in a file of about 23,000 bytes. */
const ROWS = 36;
const PAGE_BYTES = 512;

/** A closed store with these items. */
async function filled(t: TestContext, items: readonly Item[]): Promise<string> {
  const directory = await temporaryFolder(t);
  const store = await openFor(t, directory);
  await insertItems(store.items, items);
  await store.close();
  return directory;
}

/** A directory in memory where the system has one: a store is opened in a tenth of the time. */
function inMemory(t: TestContext): Promise<string> {
  return temporaryFolder(t, existsSync('/dev/shm') ? '/dev/shm' : undefined);
}

test('a row with a flipped bit is an error, and /readyz reports it from then on, while other rows are read', async (t) => {
  const rows = [1, 2, 3].map((n) => makeItem(new Int32(n), 'a', new Int32(n), `filler ${n} of a row`));
  const directory = await filled(t, rows);
  const file = await readFile(join(directory, FILE));
  const at = file.indexOf('filler 2 of a row');
  file[at] = (file[at] ?? 0) ^ 1;
  await writeFile(join(directory, FILE), file);
  const warnings: string[] = [];
  const onWarning = (message: string) => warnings.push(message);
  const store = await openDirectory(directory, { onWarning });
  await store.ping();
  const unfit = (error: unknown) => error instanceof AppError && error.code === 'store-unfit';
  await assert.rejects(walk(store.items, { sort: '_id', direction: 1 }, 40), unfit);
  await assert.rejects(store.ping(), unfit);
  assert.match(warnings.join(), /the file of the store is damaged: row 1 of a batch .*restore a backup/);
  const first = await readRows(store.items, { sort: '_id', direction: 1 }, {}, { rows: 1, bytes: PLENTY });
  assert.deepEqual(first.rows, [rows[0]?.bytes]);
});

/** The ids of the rows in the log of changes. */
async function logged({ items }: StoreWithItems, { token }: FeedPlace): Promise<string[]> {
  const feed = feedOf(items);
  return (await keysSince(feed, { token }, 50)).keys.map((key) => Buffer.from(key).toString('hex')).sort();
}

/** A file with other bytes than were written, and where they are. */
interface Damage {
  readonly where: string;
  readonly file: Buffer;
}

/** At most `most` bits, flipped one at a time: all, one of each byte, or some anywhere. */
function* flips(whole: Buffer, most: number): Generator<Damage> {
  const random = randomFrom(SEED);
  const bytes = whole.length;
  const all = 8 * bytes;
  for (let n = 0; n < Math.min(most, all); n++) {
    const at = most >= all ? n >> 3 : most >= bytes ? n : below(random, bytes);
    if (most < all && at >= bytes) return;
    const bit = 1 << (most >= all ? n & 7 : below(random, 8));
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

/** Each page of a b-tree above its leaves, with one of its pages below it twice, in the place of another. */
function* wrongBranches(whole: Buffer): Generator<Damage> {
  for (let page = 0; page < whole.length; page += PAGE_BYTES) {
    const head = page === 0 ? 100 : page;
    if (whole[head] !== 2 && whole[head] !== 5) continue;
    const cells = Array.from(
      { length: whole.readUInt16BE(head + 3) },
      (_, n) => page + whole.readUInt16BE(head + 12 + 2 * n),
    );
    for (const [n, to] of [...cells, head + 8].entries())
      for (const [m, from] of [...cells, head + 8].entries()) {
        if (n === m) continue;
        const file = Buffer.from(whole);
        whole.copy(file, to, from, from + 4);
        yield { where: `branch ${n} of page ${page / PAGE_BYTES + 1} is branch ${m}`, file };
      }
  }
}

/** Each leaf of an index, with one of its entries twice, in the place of its neighbour, or without its key. */
function* wrongPlaces(whole: Buffer): Generator<Damage> {
  for (let page = PAGE_BYTES; page < whole.length; page += PAGE_BYTES) {
    const entries = whole[page] === 10 ? whole.readUInt16BE(page + 3) : 0;
    for (let n = 0; n < entries; n++) {
      const file = Buffer.from(whole);
      file[page + whole.readUInt16BE(page + 8 + 2 * n) + 2] = 0; // the type of the key is that of NULL
      yield { where: `entry ${n} of page ${page / PAGE_BYTES + 1} has no key`, file };
    }
    for (let n = 1; n < entries; n++)
      for (const [to, from] of [
        [n - 1, n],
        [n, n - 1],
      ] as const) {
        const file = Buffer.from(whole);
        whole.copy(file, page + 8 + 2 * to, page + 8 + 2 * from, page + 10 + 2 * from);
        yield { where: `entry ${to} of page ${page / PAGE_BYTES + 1} is entry ${from}`, file };
      }
  }
}

function* damagesOf(whole: Buffer): Generator<Damage> {
  let n = 0;
  for (const damages of [wrongPlaces, wrongBranches, lostPages])
    for (const damage of damages(whole)) if (n++ % EACH === 0) yield damage;
  yield* flips(whole, DAMAGES);
}

/** What the check in the background finds in a file. */
async function checkedIn(directory: string, rowsAtOnce: number): Promise<string | null> {
  const { connection, sets: collections, close } = openRaw(directory);
  const looks = new Looks(connection, { check: () => undefined, faultOf: (error) => error });
  const query = (...call: Parameters<typeof connection.all>) =>
    Promise.resolve().then(() => connection.all(...call));
  try {
    return await new IntegrityCheck({ looks, collections, query, signal: NEVER, rowsAtOnce }).fault();
  } finally {
    close();
  }
}

/** Rows that are walked by the index of ids, and rows that lie in its order, which are walked as they lie. */
const STORES = {
  'rows in any order': makeItems(ROWS),
  'rows in the order of ids': expectedItems(makeItems(ROWS), { sort: '_id', direction: 1 }),
};

for (const [kind, items] of Object.entries(STORES))
  test(`a store of ${kind} with a flipped bit, a page of zeros or a cut gives what was written or an error, or the check finds it (seed ${SEED})`, async (t) => {
    const directory = await temporaryFolder(t);
    const made = new DatabaseSync(join(directory, FILE));
    made.exec(`pragma page_size=${PAGE_BYTES}; pragma journal_mode=wal; create table a(b); drop table a`);
    made.close();
    const store = await openDirectory(directory);
    const from = await feedOf(store.items).now(NEVER);
    await insertItems(store.items, items);
    const expected = PLANS.map((plan) => expectedItems(items, plan).map(({ bytes }) => bytes));
    const changes = await logged(store, from);
    await store.close();
    const whole = await readFile(join(directory, FILE));
    assert.equal(whole.readUInt16BE(16), PAGE_BYTES);
    const seen = { right: 0, reported: 0, wrong: 0 };
    const wrong: string[] = [];
    const damaged = await inMemory(t);
    for (const { where, file } of damagesOf(whole)) {
      const place = join(damaged, 'store');
      await mkdir(place);
      await copyFile(join(directory, 'sluice.mark'), join(place, 'sluice.mark'));
      await writeFile(join(place, FILE), file);
      const others: string[] = [];
      const reported = await useDamaged(place, (what) => others.push(`${where}: ${what}`));
      if (others.length > 0)
        for (const rowsAtOnce of [1_000, 7])
          if ((await checkedIn(place, rowsAtOnce)) === null)
            wrong.push(...others, `not found, ${rowsAtOnce} at once`);
      await rm(place, { recursive: true });
      seen[others.length > 0 ? 'wrong' : reported ? 'reported' : 'right']++;
    }
    t.diagnostic(
      `${seen.right} damaged stores were right, ${seen.reported} reported the damage, and the check finds that of the` +
        ` ${seen.wrong} that gave something else, of ${whole.length} bytes`,
    );
    for (const rowsAtOnce of [1_000, 7]) assert.equal(await checkedIn(directory, rowsAtOnce), null);
    assert.deepEqual(wrong, []);

    /** Whether reads report the damage. `onWrong`: something else was read than what was written. */
    async function useDamaged(place: string, onWrong: (what: string) => void): Promise<boolean> {
      let opened: StoreWithItems;
      try {
        opened = await openDirectory(place);
      } catch (error) {
        assert.ok(error instanceof Error);
        return true;
      }
      let failures = 0;
      const compare = async (reading: Promise<unknown>, written: unknown, what: string) => {
        try {
          if (!isDeepStrictEqual(await reading, written)) onWrong(`other ${what}`);
        } catch (error) {
          failures++;
          if (!(error instanceof AppError)) onWrong(`${what}: ${String(error)}`);
        }
      };
      for (const [index, plan] of PLANS.entries())
        for (const size of SIZES)
          await compare(
            walk(opened.items, plan, size),
            expected[index],
            `${JSON.stringify(plan)}, ${size} at once`,
          );
      for (const item of items.slice(0, SINGLES))
        await compare(
          walk(opened.items, { ...ONE_ROW, equals: [{ path: KEY, value: item.id }] }, 1),
          [item.bytes],
          `row ${String(item.id)}`,
        );
      await compare(logged(opened, from), changes, 'changes');
      await opened.close().catch(() => undefined);
      return failures > 0;
    }
  });

test('a number of a change that was never written is damage', async (t) => {
  const directory = await filled(t, makeItems(3));
  const database = new DatabaseSync(join(directory, FILE));
  database.exec(`update l1 set seq = ${2n ** 58n} where seq = 3`);
  database.close();
  const store = await openDirectory(directory);
  await assert.rejects(feedOf(store.items).now(NEVER), { code: 'store-unfit' });
});

test('an index that the file has lost is damage', async (t) => {
  const directory = await filled(t, makeItems(3));
  const database = new DatabaseSync(join(directory, FILE));
  const lost = database
    .prepare("select name from sqlite_schema where type = 'index' and sql is not null")
    .all();
  for (const { name } of lost) database.exec(`drop index ${String(name)}`);
  database.close();
  assert.ok(lost.length >= 3);
  const store = await openFor(t, directory);
  for (const plan of PLANS.slice(1))
    await assert.rejects(walk(store.items, plan, 40), { code: 'store-unfit', message: /damaged/ });
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
  const database = file();
  database.exec("delete from sets where name = 'resource items'");
  database.close();
  await assert.rejects(openDirectory(directory), {
    code: 'store-unfit',
    message: /damaged/,
  });
  assert.deepEqual(tables(), before);
});
