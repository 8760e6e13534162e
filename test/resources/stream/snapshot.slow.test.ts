import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Collection, Document } from 'mongodb';
import { jsonOf, linesOf, problemOf } from '../../support/answers.ts';
import { catalogue, expectedIds } from '../../support/resources/catalogue.ts';
import { fetchUntilCut, startCutter } from '../../support/faults/cutter.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import type { Plan } from '../../../src/store/store.ts';
import { openStore, testClient, WAYS } from '../../support/store/mongo/mongo.ts';
import { ownMongod, testMongo, withDatabase } from '../../support/store/mongo/mongod.ts';
import { NEVER, readRows } from '../../support/store/reading.ts';
import type { Member } from '../../support/store/mongo/replica-set.ts';
import { onMongo } from '../../support/process/each-server.ts';
import { runPullOf } from '../../support/pull/pulling.ts';
import { serverOn, testServer, type TestServer } from '../../support/process/server.ts';
import { temporaryFolder } from '../../support/directory.ts';

const ROWS = catalogue(1500);

interface Shop {
  readonly server: TestServer;
  readonly items: Collection;
}

async function shop(t: TestContext): Promise<Shop | null> {
  const uri = await testMongo(t);
  if (uri === null) return null;
  const server = await serverOn(t, { MONGODB_URI: uri });
  await server.insert(ROWS.map(({ document }) => document));
  return { server, items: testClient(t, uri).db().collection('items') };
}

/** Changes prices, deletes and inserts, so that few rows stay in place. */
async function changeRows(items: Collection, round: number): Promise<void> {
  await items.updateMany({ n: { $mod: [3, 0] } }, [{ $set: { price: { $subtract: [10, '$price'] } } }]);
  await items.deleteMany({ n: { $mod: [97, round] } });
  await items.insertMany(
    catalogue(40, 'string').map(({ document }, n) => ({ ...document, _id: `new ${round}/${n}` as never })),
  );
}

async function codeOf(server: TestServer, path: string): Promise<string> {
  const { status, code } = await problemOf(server.get(path));
  return `${status} ${code}`;
}

/** A row's line at the beginning. */
function lineOf(id: string | number): string {
  const row = ROWS.find((one) => one.id === id) ?? assert.fail();
  return JSON.stringify({ id, price: row.price, n: row.document.n as number });
}

onMongo(shop, (test) => {
  test('a snapshot that is pulled in pieces while everything changes is the set at its time', async ({
    server,
    items,
  }) => {
    const cases = [
      ...['id_asc', 'id_desc', 'price_asc', 'price_desc'].map((sort) => ({ sort, category: undefined })),
      { sort: 'price_desc', category: 'music' },
      { sort: 'id_asc', category: 'toys' },
    ];
    const begun = await Promise.all(
      cases.map(async ({ sort, category }) => {
        const filter = category === undefined ? '' : `&category=${category}`;
        const path = `/items/stream?sort=${sort}${filter}&fields=price,n&checkpoints=true&limit=170`;
        return { path, lines: await linesOf(server.get(`${path}&consistency=snapshot`)) };
      }),
    );
    for (const [n, { path, lines }] of begun.entries()) {
      const all: string[] = [];
      let piece = lines;
      for (let round = 0; ; round++) {
        const { end } = JSON.parse(piece.at(-1) ?? '') as { end: { cursor: string; rows: number } };
        all.push(...piece.slice(0, -1));
        if (end.rows === 0) break;
        if (round < 2) await changeRows(items, 10 * n + round);
        piece = await linesOf(server.get(`${path}&cursor=${end.cursor}`)); // the cursor carries the time
      }
      const { sort, category } = cases[n] ?? assert.fail();
      assert.deepEqual(all, expectedIds(ROWS, sort, category).map(lineOf), path);
    }
  });

  test('the parts of a snapshot together are the set at its time, and resume at it', async ({
    server,
    items,
  }) => {
    const path = '/items/partitions?n=4&consistency=snapshot&fields=price,n';
    const { partitions } = (await jsonOf(server.get(path))) as { partitions: { url: string }[] };
    await changeRows(items, 1);
    const all: string[] = [];
    for (const { url } of partitions) {
      assert.match(url, /&at=\d+$/);
      const begin = await server.get(`${url}&limit=100`);
      assert.ok(url.endsWith(`at=${begin.headers.get('snapshot-at')}`));
      const lines = await linesOf(begin);
      const { id } = JSON.parse(lines[99] ?? '') as { id: string | number };
      await changeRows(items, 2 + all.length);
      all.push(...lines, ...(await linesOf(server.get(`${url}&after=${id}`))));
    }
    assert.deepEqual(all, expectedIds(ROWS, 'id_asc').map(lineOf));
  });

  test('a pull of a snapshot through cuts, over one connection or three, is the set at its time', async ({
    server,
    items,
  }, t) => {
    const filler = catalogue(21_000, 'string').map(({ document }) => ({
      ...document,
      _id: `more ${document._id}`,
    }));
    await server.insert(filler); // enough rows for a checkpoint among them
    const cutter = await startCutter(t, server.url);
    const file = join(await temporaryFolder(t), 'items.ndjson');
    const changes: Promise<void>[] = [];
    for (const parallel of [1, 3]) {
      const expected = await (await server.get('/items/stream')).text();
      const before = changes.length;
      // Requests before a stream have few bytes. A single stream is cut after its checkpoint.
      cutter.nextAfter = () => (changes.length < before + 2 ? (expected.length * 0.5) / parallel : Infinity);
      const { code, text } = await runPullOf(
        [
          ...[`${cutter.url}/items/stream`, '-o', file, '--snapshot'],
          ...['--parallel', String(parallel), '--compression', 'none'],
        ],
        { seen: (line) => line.includes('retrying in') && changes.push(changeRows(items, changes.length)) },
      );
      assert.equal(code, 0, text);
      assert.ok(changes.length >= before + 2, text);
      assert.equal(await readFile(file, 'utf8'), expected, `${parallel} at once`);
      await Promise.all(changes);
      assert.notEqual(await (await server.get('/items/stream')).text(), expected);
    }
  });

  test("a snapshot's cursor continues at its own time only, and only in streams that take a time", async ({
    server,
  }) => {
    const begin = async (query: string) => {
      const response = await server.get(`/items/stream?limit=1&checkpoints=true${query}`);
      const { end } = JSON.parse((await response.text()).split('\n').at(-2) ?? '') as {
        end: { cursor: string };
      };
      return { cursor: end.cursor, at: BigInt(response.headers.get('snapshot-at') ?? 0) };
    };
    const timed = await begin('&consistency=snapshot');
    const plain = await begin('');
    const go = (query: string) => server.get(`/items/stream?limit=1&${query}`);
    for (const query of [
      '',
      '&consistency=snapshot',
      `&at=${timed.at}`,
      `&consistency=snapshot&at=${timed.at}`,
    ]) {
      const response = await go(`cursor=${timed.cursor}${query}`);
      assert.equal(response.status, 200, await response.text());
      assert.equal(response.headers.get('snapshot-at'), String(timed.at), query);
    }
    assert.equal((await go(`cursor=${plain.cursor}`)).headers.get('snapshot-at'), null);
    for (const path of [
      `/items/stream?cursor=${timed.cursor}&at=${timed.at - 1n}`,
      `/items/stream?cursor=${timed.cursor}&sort=id_desc`,
      `/items/stream?cursor=${plain.cursor}&at=${timed.at}`,
      `/items/stream?cursor=${plain.cursor}&consistency=snapshot`,
      `/items/stream?cursor=${timed.cursor}&consistency=live`,
      `/items?cursor=${timed.cursor}`,
    ])
      assert.equal(await codeOf(server, path), '400 cursor-mismatch', path);
  });

  test('a time that is invalid, in the future or gone is refused before the first row', async ({
    server,
    items,
  }) => {
    const begin = await server.get('/items/stream?limit=1&consistency=snapshot');
    const at = BigInt(begin.headers.get('snapshot-at') ?? 0);
    for (const wrong of ['x', '-1', '01', '1.5', '', String(2n ** 64n), String(at + (3600n << 32n)), '0'])
      assert.equal(await codeOf(server, `/items/stream?at=${wrong}`), '400 invalid-parameter', wrong);
    assert.equal(await codeOf(server, '/items/stream?consistency=strong'), '400 invalid-parameter');
    const both = `/items/stream?consistency=live&at=${at}`;
    assert.equal(await codeOf(server, both), '400 conflicting-parameters');
    const live = await server.get('/items/stream?limit=1&consistency=live');
    assert.deepEqual([live.status, live.headers.get('snapshot-at')], [200, null]);
    assert.equal(await codeOf(server, `/items?at=${at}`), '400 unknown-parameter');
    assert.equal(await codeOf(server, `/items/stream?at=${at - (3600n << 32n)}`), '410 snapshot-expired');
    await items.dropIndex('price_1__id_1');
    await items.createIndex({ price: 1, _id: 1 });
    const young = `/items/stream?sort=price_asc&at=${at}`;
    assert.equal(await codeOf(server, young), '410 snapshot-expired');
    const anew = await linesOf(server.get('/items/stream?sort=price_asc&consistency=snapshot'));
    assert.equal(anew.length, ROWS.length);
  });
});

test('a snapshot whose time is gone in mid-stream is cut, and gives the reason in a stream with checkpoints', async (t) => {
  const set = await ownMongod(t, { arguments: ['--setParameter', 'enableTestCommands=1'] });
  const member = set?.members[0];
  if (!set || !member) return;
  const server = await serverOn(t, { MONGODB_URI: withDatabase(set.uri, 'sluice') });
  await server.insert(ROWS.map(({ document }) => document));
  for (const errorCode of [239, 246]) {
    // The first two finds are the one that determines the time and that of the first batch.
    const fail: Document = {
      configureFailPoint: 'failCommand',
      mode: { skip: 2 },
      data: { failCommands: ['find'], errorCode, namespace: 'sluice.items' },
    };
    for (const checkpoints of [false, true]) {
      // The estimate of the number of rows asks with a find, too. It serves the streams of five seconds.
      await (await server.get('/items/stream?limit=1')).text();
      await member.admin((client) => client.db('admin').command(fail));
      const path = `/items/stream?consistency=snapshot&checkpoints=${checkpoints}`;
      const { bytes, whole } = await fetchUntilCut(server.url + path);
      assert.equal(whole, false);
      const lines = bytes.toString().split('\n').slice(0, -1);
      assert.ok(lines.length >= 250 && lines.length < ROWS.length, `${lines.length} lines`);
      assert.equal(/^{"error":.*"code":"snapshot-expired"/.test(lines.at(-1) ?? ''), checkpoints);
      const off: Document = { configureFailPoint: 'failCommand', mode: 'off' };
      await member.admin((client) => client.db('admin').command(off));
    }
  }
  await server.released();
});

test('a point in time is read from a member that has kept it, and is gone when none has', async (t) => {
  const enabled = ['--setParameter', 'enableTestCommands=1'];
  const set = await ownMongod(t, { members: 2, electionMs: 1_000, arguments: enabled });
  if (!set) return;
  const forget = (member: Member, mode: 'alwaysOn' | 'off') => {
    const data = { failCommands: ['find'], errorCode: 239 };
    return member.admin((client) =>
      client.db('admin').command({ configureFailPoint: 'failCommand', mode, data }),
    );
  };
  for (const { name, lane } of WAYS)
    await t.test(name, async (t) => {
      const { store } = await openStore(t, withDatabase(set.uri, `lane_${lane}`), { lane });
      const rows = ROWS.slice(0, 50).map(({ document }) => BSON.serialize(document));
      await store.items.insert(rows, 'fail');
      const { now } = await store.items.describe(NEVER, { now: true });
      const at = now ?? assert.fail();
      const plan: Plan = { sort: '_id', direction: 1, at };
      const read = async () =>
        (await readRows(store.items, plan, {}, { rows: 99, bytes: Infinity })).rows.length;
      await forget(await set.primary(), 'alwaysOn');
      assert.equal(await read(), 50);
      for (const member of set.members) await forget(member, 'alwaysOn');
      await assert.rejects(read(), { code: 'snapshot-expired' });
      for (const member of set.members) await forget(member, 'off');
      assert.equal(await read(), 50);
    });
});

test('a store without snapshots refuses them', async (t) => {
  const set = await ownMongod(t, { replicated: false });
  const servers = [
    await testServer(t, 'sqlite', 'uws'),
    set && (await serverOn(t, { MONGODB_URI: set.uri })),
  ];
  for (const server of servers)
    for (const path of ['stream?', 'partitions?'])
      for (const query of ['consistency=snapshot', `at=${1_700_000_000n << 32n}`])
        if (server)
          assert.equal(await codeOf(server, `/items/${path}${query}`), '400 snapshot-unsupported', query);
});
