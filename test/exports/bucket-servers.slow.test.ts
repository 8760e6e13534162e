import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { Export } from '../../src/exports/export.ts';
import { awaited, exportRows, order } from '../support/exports/exports.ts';
import { childServer } from '../support/process/child-server.ts';
import { serverOn } from '../support/process/server.ts';
import { keysAt, newFiles, straysAt } from '../support/store/bucket/bucket.ts';
import { faultyGateway, IS, type FaultyGateway } from '../support/store/bucket/gateway.ts';
import { ADMIN, Seaweed } from '../support/store/bucket/seaweed.ts';
import { until } from '../support/store/changes.ts';
import { insertDocuments } from '../support/store/items.ts';
import { openStore } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { shared } from '../support/tests-with.ts';

const seaweed = shared((t) => Seaweed.start(t));
/** Two parts of a bucket. */
const ROWS = exportRows(60_000);
const LARGE = { format: 'ndjson', compression: 'none' };

interface Place {
  readonly gateway: FaultyGateway;
  /** The settings of all servers of one database and one bucket. */
  readonly settings: Readonly<Record<string, string>>;
  readonly keys: ReturnType<typeof keysAt>;
  /** Stores a file that no export needs, beside one of this key. */
  readonly stray: (key: string) => Promise<string>;
}

/** A database with rows and a bucket. null: one of them can't run here. */
async function onePlace(t: TestContext): Promise<Place | null> {
  const weed = await seaweed(t);
  const MONGODB_URI = await testMongo(t);
  if (!weed || MONGODB_URI === null) return null;
  const { store } = await openStore(t, MONGODB_URI);
  await insertDocuments(store.items, ROWS);
  const gateway = await faultyGateway(t, weed.endpoint);
  const FILES = await newFiles(weed, gateway.endpoint);
  const direct = FILES.replace(encodeURIComponent(gateway.endpoint), encodeURIComponent(weed.endpoint));
  return {
    gateway,
    settings: { MONGODB_URI, FILES, ...ADMIN },
    keys: keysAt(t, direct),
    stray: straysAt(t, direct),
  };
}

/** Holds first parts of files until `release` is called. `held`: resolves when so many are held. */
function holdParts(gateway: FaultyGateway) {
  let release: () => void = () => undefined;
  const released = new Promise<null>((resolve) => {
    release = () => {
      resolve(null);
    };
  });
  const uploads = new Set<string>();
  gateway.decide = (seen) => {
    if (!IS.part(seen, 1)) return null;
    uploads.add(seen.url); // a server sends it again when nothing moves for too long
    return released;
  };
  const held = (count: number) =>
    until(`${count} uploads are held`, () => Promise.resolve(uploads.size >= count));
  return { release, held };
}

/** Asserts that a server gives an export's whole file, by its link and by itself. */
async function assertWhole(url: string, { file }: Export): Promise<void> {
  assert.ok(file);
  const link = await fetch(url + file.url, { redirect: 'manual' });
  assert.equal(link.status, 307);
  for (const from of [link.headers.get('location') ?? '', `${url}${file.url}?proxy=true`]) {
    const answer = await fetch(from);
    assert.equal(answer.status, 200);
    const bytes = Buffer.from(await answer.arrayBuffer());
    assert.equal(createHash('sha256').update(bytes).digest('hex'), file.sha256);
    assert.equal(bytes.toString().split('\n').length, ROWS.length + 1);
  }
}

test('of two servers with one database and one bucket each has the files of both, and its look leaves the uploads of the other', async (t) => {
  const place = await onePlace(t);
  if (!place) return;
  const { gateway, settings, keys, stray } = place;
  const one = await serverOn(t, { ...settings, HTTP_ENGINE: 'uws' });
  const servers = [one];
  const done: Export[] = [];
  for (const engine of ['uws', 'node']) {
    const { release, held } = holdParts(gateway);
    const orderedAt = servers.at(-1) ?? one;
    const { id } = await order(orderedAt.url, LARGE);
    await held(1);
    const under = await keys();
    const upload = under.find((key) => key.endsWith('(upload)')) ?? '';
    assert.equal(under.length, done.length + 1, 'complete files and an upload');
    // A server lists all files when it starts, and then once a minute.
    const left = await stray(upload.replace(' (upload)', ''));
    const other = await serverOn(t, { ...settings, HTTP_ENGINE: engine });
    await until('the other server has looked', async () => !(await keys()).includes(left));
    assert.deepEqual(await keys(), under, 'it removes nothing that anybody needs');
    release();
    servers.push(other);
    done.push(await awaited(other.url, id));
    for (const { url } of servers) for (const each of done) await assertWhole(url, each);
  }
  assert.equal(
    gateway.seen.filter((seen) => IS.begin(seen)).length,
    done.length,
    'each file was written once',
  );
  for (const [n, { id }] of done.entries()) {
    const { url = '' } = servers.at(-1 - n) ?? {};
    assert.equal((await fetch(`${url}/exports/${id}`, { method: 'DELETE' })).status, 200);
    assert.equal((await keys()).length, done.length - 1 - n);
  }
});

test('a server is killed in the middle of two uploads: another one finishes an export and removes what is left of both', async (t) => {
  const place = await onePlace(t);
  if (!place) return;
  const { gateway, settings, keys } = place;
  const victim = await childServer(t, { ...settings, EXPORT_CONCURRENCY: '2' });
  const { release, held } = holdParts(gateway);
  const ids: string[] = [];
  for (let n = 0; n < 2; n++) ids.push((await order(victim.url.origin, LARGE)).id);
  await held(2);
  assert.equal(await victim.end('SIGKILL'), null);
  release();
  assert.deepEqual(
    (await keys()).map((key) => key.replace(/^.*\/(\w+)\..*( .*)$/, '$1$2')).toSorted(),
    ids.map((id) => `${id} (upload)`).toSorted(),
  );
  const { url } = await serverOn(t, settings);
  const [removed = '', finished = ''] = ids;
  assert.equal((await fetch(`${url}/exports/${removed}`, { method: 'DELETE' })).status, 200);
  const done = await awaited(url, finished); // once the lease of the killed one has expired
  await assertWhole(url, done);
  await until('what the killed server left is removed', async () => (await keys()).length === 1);
  assert.match((await keys())[0] ?? '', new RegExp(`/${finished}\\.\\w+$`));
});
