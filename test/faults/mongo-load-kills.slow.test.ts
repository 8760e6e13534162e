import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import type { Collection, MongoClient } from 'mongodb';
import { idsIn, linesOf, problemOf } from '../support/answers.ts';
import { sluice } from '../support/process/commands.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';

const ROWS = 20_000;

interface Killed {
  readonly environment: Record<string, string>;
  readonly rows: Collection;
  /** Runs the import to its end, or to its kill as soon as `isTime` is true. Resolves with its exit code. */
  readonly run: (arguments_: readonly string[], isTime?: () => Promise<boolean>) => Promise<number | null>;
}

async function begin(t: TestContext, name: string): Promise<Killed | null> {
  const uri = await testMongo(t);
  if (uri === null) return null;
  const file = join(await temporaryFolder(t), 'rows.ndjson');
  const lines = Array.from({ length: ROWS }, (_, n) =>
    JSON.stringify({ _id: n, category: `c${n % 7}`, price: (n * 7_919) % 10_007 }),
  );
  await writeFile(file, `${lines.join('\n')}\n`);
  const environment = { MONGODB_URI: uri };
  const client = testClient(t, uri);
  const run: Killed['run'] = async (arguments_, isTime) => {
    let isOver = false;
    const { code, said } = await sluice(
      ['import', file, '--into', name, ...arguments_],
      environment,
      (child) => {
        child.once('exit', () => (isOver = true));
        if (!isTime) return;
        void (async () => {
          while (!isOver && !(await isTime())) await nextTurn();
          child.kill('SIGKILL');
        })();
      },
    );
    if (!isTime) assert.equal(code, 0, said);
    await untilQuiet(client);
    return code;
  };
  return { environment, rows: client.db().collection(name), run };
}

/** Resolves when the server has ended what a killed program asked of the test's database: it goes on with that. */
async function untilQuiet(client: MongoClient): Promise<void> {
  const stages = [
    { $currentOp: { allUsers: true } },
    { $match: { ns: new RegExp(`^${client.db().databaseName}\\.`) } },
  ];
  while ((await client.db('admin').aggregate(stages).toArray()).length > 0) await nextTurn();
}

/** The moments at which an import is killed. */
const MOMENTS: Record<string, (rows: Collection, index: string) => Promise<boolean>> = {
  'a part of its rows is there': async (rows) => (await rows.estimatedDocumentCount()) > 0,
  'its indexes are being made': async (rows, index) => {
    if ((await rows.estimatedDocumentCount()) < ROWS) return false;
    return (await rows.indexes()).some(({ name }) => name === index);
  },
};

/** The number of rows of a stream, in which none comes twice. */
async function rowsIn(server: TestServer, path: string): Promise<number> {
  const ids = idsIn(await linesOf(server.get(path)));
  assert.equal(new Set(ids).size, ids.length, 'no row comes twice');
  return ids.length;
}

for (const [moment, isTime] of Object.entries(MOMENTS)) {
  test(`an import of items that is killed when ${moment} is served whole by every index, and goes on`, async (t) => {
    const killed = await begin(t, 'items');
    if (!killed) return;
    const { rows, run, environment } = killed;
    await run([], () => isTime(rows, 'price_1__id_1'));
    const there = await rows.countDocuments();
    t.diagnostic(`killed with ${there} rows`);
    const server = await serverOn(t, environment);
    for (const query of ['', '?sort=price_asc', '?sort=price_desc'])
      assert.equal(await rowsIn(server, `/items/stream${query}`), there, query);
    await run(['--on-conflict', 'skip']);
    for (const query of ['', '?sort=price_asc'])
      assert.equal(await rowsIn(server, `/items/stream${query}`), ROWS, query);
    const ofCategory = Array.from({ length: ROWS }, (_, n) => n % 7).filter((n) => n === 3).length;
    assert.equal(await rowsIn(server, '/items/stream?category=c3&sort=price_asc'), ofCategory);
  });

  test(`an import into a resource that is killed when ${moment} has no index that serves a part, and goes on`, async (t) => {
    const killed = await begin(t, 'orders');
    if (!killed) return;
    const { rows, run, environment } = killed;
    const indexes = ['--index', 'price', '--index', 'category,price'];
    await run(indexes, () => isTime(rows, 'price_1__id_1'));
    const there = await rows.countDocuments();
    t.diagnostic(`killed with ${there} rows`);
    const server = await serverOn(t, { ...environment, EXPOSE: 'orders' });
    assert.equal(await rowsIn(server, '/orders/stream'), there);
    const answer = await server.get('/orders/stream?sort=price_asc');
    if (answer.status === 200) assert.equal((await linesOf(answer)).length, there);
    else assert.equal((await problemOf(answer)).code, 'not-indexed');
    await run([...indexes, '--on-conflict', 'skip']);
    const again = await serverOn(t, { ...environment, EXPOSE: 'orders' });
    for (const query of ['', '?sort=price_asc'])
      assert.equal(await rowsIn(again, `/orders/stream${query}`), ROWS, query);
    assert.equal((await again.get('/orders?category=c3&sort=price_desc')).status, 200);
  });
}
