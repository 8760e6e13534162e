import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { pino } from 'pino';
import type { ChunkEntry, EditionHead } from '../../src/base/edition/head.ts';
import { filesOfIndex } from '../../src/base/edition/index-tree.ts';
import { Faults } from '../../src/base/errors.ts';
import { temporaryFolder } from '../support/directory.ts';
import { onStores } from '../support/process/each-server.ts';
import { serverOn, type StoreName, type TestServer } from '../support/process/server.ts';
import { runPullOf } from '../support/pull/pulling.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { until } from '../support/store/changes.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';

const ROWS = catalogue(3_000, 'string').map(({ document }) => document);
const [ONE = {}, OTHER = {}] = catalogue(3_002, 'string')
  .slice(-2)
  .map(({ document }) => document);

/** A server that fills the items, and two on its store that make their editions. */
async function servers(t: TestContext, store: StoreName) {
  const uri = store === 'mongodb' ? await testMongo(t) : '';
  if (uri === null) return null;
  const folder = await temporaryFolder(t);
  const items = { editions: { every: '1 h', chunk: '16 KiB' } };
  const shared = {
    MONGODB_URI: uri,
    DATA_DIR: folder,
    ...(uri !== '' && { FILES: pathToFileURL(folder).href }),
  };
  const filler = await serverOn(t, shared);
  await filler.insert(ROWS);
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const settings = {
    ...shared,
    EDITIONS: 'items',
    RESOURCES_FILE: await resourcesFile(t, { resources: { items } }),
  };
  const one = await serverOn(t, settings, { log });
  const other = await serverOn(t, settings, { log });
  const made = () => lines.filter((line) => line.includes('edition made')).length;
  return { one, other, made, folder };
}

/** The head of the newest edition that has so many rows. Before the first one, requests get 503 with the reason. */
async function headWith(server: TestServer, rows: number): Promise<EditionHead> {
  let head: EditionHead | undefined;
  await until(`the edition has ${rows} rows`, async () => {
    const response = await server.get('/items/edition');
    const body = (await response.json()) as EditionHead & { readonly code?: string };
    assert.ok(response.status === 200 || body.code === 'not-ready', JSON.stringify(body));
    if (response.status === 200) head = body;
    return response.status === 200 && body.rows === rows;
  });
  return head ?? assert.fail();
}

async function fileOf(server: TestServer, name: string): Promise<Buffer> {
  const response = await server.get(`/items/chunks/${name}`);
  assert.equal(response.status, 200, name);
  return Buffer.from(await response.arrayBuffer());
}

async function chunksOf(server: TestServer, head: EditionHead): Promise<readonly ChunkEntry[]> {
  return (await filesOfIndex(head.index, (name) => fileOf(server, `${name}.index.json`))).chunks;
}

async function makeNext(server: TestServer): Promise<void> {
  const asked = await fetch(`${server.url}/items/edition`, { method: 'POST' });
  assert.equal(asked.status, 202);
  assert.equal(asked.headers.get('location'), '/items/edition');
}

async function streamOf(server: TestServer): Promise<Buffer> {
  return Buffer.from(await (await server.get('/items/stream')).arrayBuffer());
}

onStores(servers, (testStore, store) => {
  testStore(
    'servers make one line of editions, which clients follow',
    async ({ one, other, made, folder }, t) => {
      const first = await headWith(one, ROWS.length);
      assert.equal((await headWith(other, ROWS.length)).edition, first.edition);
      assert.equal(made(), 1);
      const url = `${one.url}/items/edition`;
      const file = join(await temporaryFolder(t), 'items.ndjson');
      const pulled = await runPullOf([url, '-o', file]);
      assert.equal(pulled.code, 0, pulled.text);
      assert.deepEqual(await readFile(file), await streamOf(one));

      await other.insert([ONE]);
      await makeNext(other);
      const second = await headWith(one, ROWS.length + 1);
      assert.equal((await headWith(other, ROWS.length + 1)).edition, second.edition);
      assert.deepEqual([second.sequence, made()], [1, 2]);
      const known = new Set((await chunksOf(one, first)).map(({ name }) => name));
      assert.ok(known.size > 8, `${known.size} chunks`);
      const fresh = (await chunksOf(one, second)).filter(({ name }) => !known.has(name));
      assert.ok(fresh.length >= 1 && fresh.length <= 2, `${fresh.length} new chunks`);
      const [delta] = second.deltas;
      assert.deepEqual([delta?.from, delta?.rows, delta?.removed], [first.edition, 1, 0]);
      const lines = gunzipSync(await fileOf(other, `${delta?.name ?? ''}.delta.ndjson.gz`)).toString();
      assert.ok(lines.startsWith(`{"id":"${String(ONE._id)}"`), lines);

      await one.insert([OTHER]);
      const changes = await (await other.get(`/items/changes?since=${second.changes}`)).text();
      assert.ok(changes.includes(String(OTHER._id)) && !changes.includes(String(ONE._id)), changes);

      const mirror = await temporaryFolder(t);
      const mirrored = await runPullOf(['--mirror', mirror, url]);
      assert.equal(mirrored.code, 0, mirrored.text);
      const kept = JSON.parse(await readFile(join(mirror, 'edition.json'), 'utf8')) as EditionHead;
      assert.equal(kept.edition, second.edition);
      const own = await readFile(join(folder, 'editions/items/edition.json'), 'utf8');
      assert.equal(
        (JSON.parse(own) as EditionHead).edition,
        second.edition,
        `${store}: a web server can serve it`,
      );
    },
  );
});

const faultsOf = (t: TestContext, environment: Record<string, string>) => {
  return serverOn(t, environment).then(
    () => [],
    (error: unknown) => (error instanceof Faults ? error.faults : assert.fail(String(error))),
  );
};

test('EDITIONS that name no resource stop the start', async (t) => {
  assert.deepEqual(await faultsOf(t, { MONGODB_URI: '', EDITIONS: 'items,order' }), [
    'EDITIONS: there is no resource order; there are items',
  ]);
});

test('editions of rows in MongoDB need a place for their files', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const [fault] = await faultsOf(t, { MONGODB_URI: uri, EDITIONS: 'items' });
  assert.match(fault ?? '', /^FILES is missing: editions of rows in MongoDB need file:\/\/\/FOLDER/);
});
