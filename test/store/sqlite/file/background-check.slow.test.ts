/** The check in the background finds what reads do not notice: they may be wrong until then, and are refused behind it. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DatabaseSync } from '../../../../src/base/sqlite.ts';
import { LOOK_MS } from '../../../../src/store/sqlite/file/background-check.ts';
import { FILE } from '../../../../src/store/sqlite/file/file.ts';
import type { Plan } from '../../../../src/store/store.ts';
import { temporaryFolder } from '../../../support/directory.ts';
import { childServer } from '../../../support/process/child-server.ts';
import { sluice } from '../../../support/process/commands.ts';
import { insertItems, makeItems } from '../../../support/store/items.ts';
import { NEVER, PLENTY, readRows, walk } from '../../../support/store/reading.ts';
import { bodyOf } from '../../../support/users/user-writers.ts';
import { PATH, usersAt } from '../../../support/users/users.ts';
import { openDirectory, queryFile } from '../../../support/store/sqlite/sqlite.ts';

const ROWS = 3_000;
const BY_PRICE: Plan = { sort: 'price', direction: 1 };
const DAY_MS = 24 * 60 * 60_000;
const UNFIT = { code: 'store-unfit' };

/** A closed store of items, and what damages it. */
async function filled(t: TestContext) {
  const directory = await temporaryFolder(t);
  const path = join(directory, FILE);
  const store = await openDirectory(directory);
  await insertItems(store.items, makeItems(ROWS));
  await store.close();
  // The entries of the index of prices begin with numbers.
  const column = ['i1', 'i2', 'i3'].find(
    (name) => queryFile(path, `select min(hex(${name})) like '0A%' from s1`)[0]?.[0] === 1,
  );
  const [[root]] = queryFile(
    path,
    `select rootpage from sqlite_schema where name = '${String(column)}_1'`,
  ) as [[number]];
  const change = async (damage: (file: Buffer, at: number, pageBytes: number) => void) => {
    const file = await readFile(path);
    const pageBytes = file.readUInt16BE(16);
    const at = (root - 1) * pageBytes;
    assert.equal(file[at], 2, 'the index has a page above its leaves');
    damage(file, at, pageBytes);
    await writeFile(path, file);
  };
  return {
    directory,
    path,
    /** Two leaves of the index of prices, each in the place of the other. */
    swapPages: () =>
      change((file, at) => {
        const [one, other] = [0, 1].map((n) => at + file.readUInt16BE(at + 12 + 2 * n)) as [number, number];
        const first = file.readUInt32BE(one);
        const second = file.readUInt32BE(other);
        file.writeUInt32BE(second, one);
        file.writeUInt32BE(first, other);
      }),
    /** One branch less in the page above the leaves, which hides the rows below it from the order of prices. */
    hideBranch: () => change((file, at) => void file.writeUInt16BE(file.readUInt16BE(at + 3) - 1, at + 3)),
  };
}

/** A store in this process whose clocks stand until `pass`, and what it warns of. */
async function openAt(t: TestContext, directory: string) {
  const warnings: string[] = [];
  let time = Date.now();
  const onWarning = (message: string) => warnings.push(message);
  const store = await openDirectory(directory, { onWarning, wallClock: () => time });
  return {
    store,
    warnings,
    pass: (ms: number) => {
      time += ms;
      t.mock.timers.tick(LOOK_MS);
    },
    /** Resolves when the check has found damage. */
    found: async () => {
      while (warnings.length === 0) await nextTurn();
      return warnings[0] ?? '';
    },
  };
}

/** What the file says under a key. */
function metaOf(path: string, key: string): unknown {
  return queryFile(path, `select value from meta where key = '${key}'`)[0]?.[0];
}

for (const damage of ['swapPages', 'hideBranch'] as const)
  test(`${damage}: a stream in that order is cut when the check has found it, and /readyz is 503 in each process until the index is mended`, async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const file = await filled(t);
    await file[damage]();
    const one = await openAt(t, file.directory);
    const other = await openAt(t, file.directory);
    await one.store.ping();
    const { last } = await readRows(one.store.items, BY_PRICE, {}, { rows: 10, bytes: PLENTY });
    one.pass(0);
    assert.match(
      await one.found(),
      /the file of the store is damaged: items: .*sluice check.*restore a backup or.* reindex/,
    );
    assert.ok(last);
    await assert.rejects(
      () => readRows(one.store.items, BY_PRICE, { after: last }, { rows: 10, bytes: PLENTY }),
      UNFIT,
    );
    await assert.rejects(one.store.ping(), UNFIT);
    other.pass(0);
    await assert.rejects(other.store.ping(), UNFIT);
    await one.store.close();
    await other.store.close();
    const checked = await sluice(['check'], { DATA_DIR: file.directory });
    assert.equal(checked.code, 1, checked.said);

    const again = await openAt(t, file.directory);
    await assert.rejects(again.store.ping(), UNFIT); // a start knows what was found
    await again.store.close();
    const mended = new DatabaseSync(file.path);
    mended.exec('reindex');
    mended.close();
    const { store } = await openAt(t, file.directory);
    t.after(() => store.close());
    while (
      await store.ping().then(
        () => false,
        () => true,
      )
    )
      await nextTurn();
    assert.equal((await walk(store.items, BY_PRICE, 500)).length, ROWS);
  });

test('the check comes once a day, and not later when a clock that was ahead comes back', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { directory, path } = await filled(t);
  const { store, pass, warnings, found } = await openAt(t, directory);
  t.after(() => store.close());
  const checked = async (before: unknown) => {
    while (metaOf(path, 'check') === before) {
      pass(0); // none begins while one is under way
      await nextTurn();
    }
    return metaOf(path, 'check');
  };
  pass(0);
  const first = await checked(undefined);
  pass(DAY_MS - 1);
  assert.equal(metaOf(path, 'check'), first);
  pass(1);
  const second = await checked(first);
  assert.equal(Number(second) - Number(first), DAY_MS);
  pass(-3 * DAY_MS);
  const third = await checked(second);
  assert.equal(Number(third) - Number(second), -3 * DAY_MS);
  assert.deepEqual(warnings, []);
  const other = new DatabaseSync(path);
  other.exec("update sets set rows = rows - 1 where name = 'resource items'");
  other.close();
  pass(DAY_MS);
  assert.match(
    await found(),
    new RegExp(`the index k_1 has ${ROWS} entries, and there are ${ROWS - 1} rows`),
  );
});

test('a set that is written meanwhile has no fault', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { store, pass, warnings } = await openAt(t, await temporaryFolder(t));
  t.after(() => store.close());
  const items = makeItems(2_000);
  for (let n = 0; n < 20; n++) {
    const writes = insertItems(store.items, items.slice(0, 100 * (n + 1)), 'replace');
    pass(DAY_MS);
    await writes;
    if (n % 5 === 4) await store.items.clear(NEVER);
  }
  assert.deepEqual(warnings, []);
});

test('a start behind a killed server finds a hidden branch: /readyz is 503, streams are refused, sluice check names it', async (t) => {
  const file = await filled(t);
  const environment = { DATA_DIR: file.directory };
  await file.hideBranch();
  assert.equal((await sluice(['check'], environment)).code, 1);
  const killed = await childServer(t, environment);
  const written = await usersAt(killed.url.origin).send('PUT', `${PATH}/w1`, { body: bodyOf(1, 1) });
  assert.equal(written.status, 201, written.text);
  await killed.end('SIGKILL');
  const server = await childServer(t, environment);
  for await (const { msg } of server.log)
    if (msg.startsWith('the file of the store is damaged: items:')) break;
  const ready = await fetch(new URL('/readyz', server.url));
  assert.equal(ready.status, 503);
  assert.match(await ready.text(), /The file of the store is damaged/);
  const stream = await fetch(new URL('/items/stream?sort=price_asc', server.url));
  assert.equal(stream.status, 503);
  assert.match(await stream.text(), /store-unfit/);
});
