import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { startCutter } from '../support/faults/cutter.ts';
import { runPullOf } from '../support/pull/pulling.ts';
import { testServer, type StoreName, type TestServer } from '../support/process/server.ts';
import { queryFile } from '../support/store/sqlite/sqlite.ts';
import { until } from '../support/store/changes.ts';
import { temporaryFolder } from '../support/directory.ts';

const ROWS = 3_000;

function item(n: number, price: number) {
  return { _id: `i${n}`, category: n % 3 === 0 ? 'in' : 'out', price };
}

/** Changes some rows, removes some, and adds some. */
async function changeSome({ store: { items } }: TestServer, round: number): Promise<void> {
  const changed = Array.from({ length: 200 }, (_, n) => item((n * 17 + round) % (ROWS + 50), round));
  const moved = { ...item(round, 0), category: 'out' };
  await items.insert(
    [...changed, moved].map((one) => BSON.serialize(one)),
    'replace',
  );
  await items.remove(Array.from({ length: 20 }, (_, n) => makeBookmark({ _id: `i${n * 31 + round}` })));
}

/** The rows of the server, by id. */
async function present(server: TestServer, query: string): Promise<Map<string, unknown>> {
  const lines = await (await server.get(`/items/stream${query}`)).text();
  return byId(lines.split('\n').slice(0, -1));
}

function byId(lines: readonly string[]): Map<string, unknown> {
  return new Map(
    lines.map((line) => {
      const row = JSON.parse(line) as { readonly id: string };
      return [row.id, row] as const;
    }),
  );
}

async function startedOn(t: TestContext, store: StoreName): Promise<TestServer | null> {
  const server = await testServer(t, store, 'uws');
  await server?.insert(Array.from({ length: ROWS }, (_, n) => item(n, n)));
  return server;
}

for (const store of ['sqlite', 'mongodb'] as const) {
  test(`a copy in SQLite that is cut and run again equals the set (${store})`, async (t) => {
    const server = await startedOn(t, store);
    if (!server) return;
    const file = join(await temporaryFolder(t), 'copy.sqlite');
    const cutter = await startCutter(t, server.url);
    let cuts = 4;
    cutter.nextAfter = () => (cuts-- > 0 ? 1_000 + cuts * 20_000 : Infinity);
    const argv = [`${cutter.url}/items?category=in`, '--into', file, '--compression', 'none'];
    for (let round = 0; round < 4; round++) {
      const changing = changeSome(server, round);
      const { code, text } = await runPullOf(argv);
      await changing;
      assert.equal(code, 0, text);
    }
    assert.equal((await runPullOf(argv)).code, 0);
    const rows = queryFile(file, 'SELECT row FROM items').map(([row]) => String(row));
    assert.deepEqual(byId(rows), await present(server, '?category=in'));
    assert.ok(cuts < 0, 'all connections to be cut were cut');
  });
}

test('a followed file, applied by id in its order, equals the set', async (t) => {
  const server = await startedOn(t, 'sqlite');
  if (!server) return;
  const file = join(await temporaryFolder(t), 'items.ndjson');
  const stop = new AbortController();
  const following = runPullOf([`${server.url}/items`, '-o', file, '--follow'], { signal: stop.signal });
  for (let round = 0; round < 4; round++) await changeSome(server, round);
  await server.insert([{ _id: 'last', category: 'in', price: 1 }]);
  const textOf = (path: string) => readFile(path, 'utf8').catch(() => '');
  await until('the last row is proved', async () => {
    const [, proved = '0'] = /"bytes":(\d+).*\n$/.exec(await textOf(`${file}.state`)) ?? [];
    return (await textOf(file)).slice(0, Number(proved)).includes('{"id":"last"');
  });
  stop.abort();
  const { text } = await following;
  const copy = new Map<string, unknown>();
  for (const line of (await readFile(file, 'utf8')).split('\n').slice(0, -1)) {
    const row = JSON.parse(line) as { readonly id: string; readonly removed?: { readonly id: string } };
    if (row.removed) copy.delete(row.removed.id);
    else copy.set(row.id, row);
  }
  assert.deepEqual(copy, await present(server, ''), text);
});
