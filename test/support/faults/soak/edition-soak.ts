import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { Int32, type Db } from 'mongodb';
import { openObjects } from '../../../../src/server/open-objects.ts';
import { readFilesPlace } from '../../../../src/store/bucket/place.ts';
import { FolderObjects } from '../../../../src/store/folder/objects.ts';
import type { ObjectStore } from '../../../../src/store/objects.ts';
import type { Export } from '../../../../src/exports/export.ts';
import { temporaryFolder } from '../../directory.ts';
import { EditionWatch } from '../../editions/model/edition-watch.ts';
import { freePorts } from '../../ports.ts';
import { childServer, type ChildServer } from '../../process/child-server.ts';
import { sluice } from '../../process/commands.ts';
import type { Copy } from '../../resources/copy.ts';
import { provedIn } from '../../resources/proved.ts';
import { newFiles } from '../../store/bucket/bucket.ts';
import { ADMIN, Seaweed } from '../../store/bucket/seaweed.ts';
import { testClient } from '../../store/mongo/mongo.ts';
import { ownMongod, withDatabase } from '../../store/mongo/mongod.ts';
import type { ReplicaSet } from '../../store/mongo/replica-set.ts';
import { queryFile } from '../../store/sqlite/sqlite.ts';
import { below, oneOf, type Random } from '../../store/random-collection.ts';
import { fetchUntilCut } from '../cutter.ts';
import { insist } from './replica-world.ts';

/** Written by programs row by row, and by `sluice import --sync`. */
export const RESOURCES = ['orders', 'goods'] as const;
export type SoakResource = (typeof RESOURCES)[number];
const IDS = 4_000;
const TEXT = 'lorem ipsum '.repeat(30);
const AGAIN_MS = 200;
const COLLECTS = new URL('collect.mjs', import.meta.url).href;

export type EditionSoak = NonNullable<Awaited<ReturnType<typeof openSoak>>>;

/** Two servers on a replica set of three and a bucket of three volume servers. Null, and the test is skipped, without them. */
export async function openSoak(t: TestContext) {
  const set = await ownMongod(t, { members: 3, electionMs: 2_000 });
  const seaweed = set && (await Seaweed.start(t));
  if (!seaweed) return null;
  const uri = withDatabase(set.uri, 'soak');
  const db = testClient(t, `${uri}&w=majority`).db();
  const folder = await temporaryFolder(t);
  const FILES = await newFiles(seaweed);
  const urls = (await freePorts(2)).map((port) => `http://127.0.0.1:${port}`);
  const RESOURCES_FILE = join(folder, 'resources.json');
  const editions = { every: '2 s', keep: 3, chunk: '64 KiB' };
  const resources = Object.fromEntries(RESOURCES.map((name) => [name, { editions }]));
  await writeFile(RESOURCES_FILE, JSON.stringify({ resources }));
  await fill(db);
  const { place } = readFilesPlace({ FILES, ...ADMIN });
  const soak = new Soak({ set, seaweed, db, uri, folder, urls, objects: await openObjects(place, null) });
  const limits = { RATE_LIMIT: 'off', STREAM_LIMIT: 'off', EXPORT_LIMIT: '1000', SAMPLE: 'off' };
  const settings = { MONGODB_URI: uri, RESOURCES_FILE, FILES, ...ADMIN, ...limits };
  soak.start = async (n) => {
    const server = await childServer(t, {
      ...settings,
      PORT: new URL(urls[n] ?? '').port,
      NODE_OPTIONS: `--import=${COLLECTS}`,
    });
    soak.servers[n] = server;
    void soak.readLog(server);
  };
  for (const n of urls.keys()) await soak.start(n);
  return soak;
}

interface SoakGround {
  readonly set: ReplicaSet;
  readonly seaweed: Seaweed;
  readonly db: Db;
  readonly uri: string;
  readonly folder: string;
  readonly urls: readonly string[];
  readonly objects: ObjectStore;
}

async function fill(db: Db): Promise<void> {
  for (const name of RESOURCES) {
    await db.createCollection(name);
    await db
      .collection<{ _id: string }>(name)
      .insertMany(Array.from({ length: IDS }, (_, n) => ({ _id: idOf(n), n: new Int32(0), text: TEXT })));
  }
}

const idOf = (n: number) => `r${String(n).padStart(6, '0')}`;

class Soak {
  readonly ground: SoakGround;
  readonly servers: ChildServer[] = [];
  /** Lines of the servers' logs that report a fault. */
  readonly faults: string[] = [];
  readonly tallies = new Map<string, { whole: number; cut: number }>();
  /** What pulls said that failed. */
  readonly refusals: string[] = [];
  readonly watches: Readonly<Record<SoakResource, EditionWatch>>;
  /** Starts a server, also after it was killed. */
  start: (n: number) => Promise<void> = () => Promise.reject(new Error('not opened yet'));

  constructor(ground: SoakGround) {
    this.ground = ground;
    const watchOf = (name: string) =>
      new EditionWatch(
        ground.objects,
        name,
        () => Promise.resolve(null),
        () => undefined,
      );
    this.watches = { orders: watchOf('orders'), goods: watchOf('goods') };
  }

  async readLog({ log }: ChildServer): Promise<void> {
    for await (const line of log) if (line.level >= 50) this.faults.push(JSON.stringify(line));
  }

  url(random: Random): string {
    return oneOf(random, this.ground.urls);
  }

  count(what: string, isWhole: boolean): void {
    const tally = this.tallies.get(what) ?? { whole: 0, cut: 0 };
    if (isWhole) tally.whole++;
    else tally.cut++;
    this.tallies.set(what, tally);
  }

  /** Repeats what a client does. Being cut or refused is no fault: a wrong answer is. */
  async repeat(what: string, isOver: () => boolean, client: () => Promise<boolean>, ms = 20): Promise<void> {
    while (!isOver()) {
      const isWhole = await client().catch((error: unknown) => {
        if (error instanceof assert.AssertionError) throw error;
        return false;
      });
      this.count(what, isWhole);
      await pause(isWhole ? ms : AGAIN_MS);
    }
  }

  /** One random change of an order. */
  async write(random: Random, n: number): Promise<boolean> {
    const orders = this.ground.db.collection<{ _id: string }>('orders');
    const _id = idOf(below(random, IDS));
    const row = { n: new Int32(n), text: TEXT.slice(0, below(random, TEXT.length)) };
    const isRemoval = below(random, 4) === 0;
    await insist(async () => {
      if (isRemoval) await orders.deleteOne({ _id });
      else await orders.replaceOne({ _id }, row, { upsert: true });
    });
    return true;
  }

  /** Makes the goods those of a file in which some rows differ from the one before. */
  async sync(random: Random, turn: number): Promise<boolean> {
    const file = join(this.ground.folder, 'goods.ndjson');
    const rows = Array.from({ length: IDS }, (_, n) => ({ n, isChanged: below(random, 40) === 0 }))
      .filter(() => below(random, 50) > 0)
      .map(({ n, isChanged }) => `{"_id":"${idOf(n)}","n":${isChanged ? turn : 0},"text":"${TEXT}"}\n`);
    await writeFile(file, rows.join(''));
    const args = ['import', file, '--into', 'goods', '--sync', '--yes'];
    return (await sluice(args, { MONGODB_URI: this.ground.uri })).code === 0;
  }

  /** A stream of each resource: with a clean end it is what its end proves. */
  async stream(random: Random): Promise<boolean> {
    const path = `/${oneOf(random, RESOURCES)}/stream?checkpoints=true`;
    const { bytes, whole } = await fetchUntilCut(this.url(random) + path, {
      'accept-encoding': oneOf(random, ['identity', 'gzip', 'br']),
    });
    const { ended, error } = provedIn(bytes);
    assert.ok(!whole || ended || error, 'a clean end without a proof');
    return ended;
  }

  /** Keeps a copy up to date. */
  async follow(random: Random, name: SoakResource, copy: Copy, isOver: () => boolean): Promise<boolean> {
    const url = this.url(random) + copy.next(`/${name}/stream`);
    const answer = await copy.read(url, { bytes: below(random, 400_000), until: isOver });
    assert.notEqual(answer.status, 410, answer.problem);
    return answer.status === 200;
  }

  /** An export into the bucket. Null: a server or the bucket refused. */
  async export(random: Random, resource: SoakResource): Promise<string[] | null> {
    const url = this.url(random);
    const ordered = await fetch(`${url}/exports`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resource, format: 'ndjson', compression: 'gzip' }),
    });
    const { id } = (await ordered.json()) as Export;
    if (ordered.status !== 202) return null;
    for (const end = performance.now() + 60_000; performance.now() < end;) {
      await pause(AGAIN_MS);
      const found = (await (await fetch(`${url}/exports/${id}`)).json()) as Export;
      if (found.state === 'failed') return null;
      if (found.state !== 'complete' || !found.file) continue;
      const answer = await fetch(`${url}/exports/${id}/file`);
      const bytes = Buffer.from(await answer.arrayBuffer());
      await fetch(`${url}/exports/${id}`, { method: 'DELETE' });
      if (answer.status !== 200) return null;
      assert.equal(createHash('sha256').update(bytes).digest('hex'), found.file.sha256, 'an export');
      const lines = gunzipSync(bytes).toString().split('\n').slice(0, -1);
      assert.equal(lines.length, found.file.rows, 'rows of an export');
      return lines;
    }
    return null;
  }

  /** Looks at the newest edition in the bucket, and at the one that a server gives. */
  async look(random: Random, name: SoakResource): Promise<boolean> {
    await this.watches[name].lookAtFolder();
    const url = this.url(random);
    const answer = await fetch(`${url}/${name}/edition`);
    const head = Buffer.from(await answer.arrayBuffer());
    assert.ok(answer.status === 200 || answer.status >= 500, head.toString());
    if (answer.status === 200) await this.watches[name].look(head, url);
    return answer.status === 200;
  }

  mirrorOf(name: SoakResource): string {
    return join(this.ground.folder, 'mirror', name);
  }

  copyOf(name: SoakResource): string {
    return join(this.ground.folder, `${name}.sqlite`);
  }

  /** Brings a mirror or a copy in SQLite up to date by the command line, from the server that is killed. */
  async pull(name: SoakResource, how: '--mirror' | '--into'): Promise<boolean> {
    const [url = ''] = this.ground.urls;
    const to = how === '--mirror' ? this.mirrorOf(name) : this.copyOf(name);
    await mkdir(join(this.ground.folder, 'mirror'), { recursive: true });
    const { code, said } = await sluice(['pull', `${url}/${name}/edition`, how, to], {});
    this.#said = said;
    if (code !== 0) this.refusals.push(`${how} ${name}: ${said.trim().slice(-300)}`);
    return code === 0;
  }

  #said = '';

  /** What the last pull said. */
  get said(): string {
    return this.#said;
  }

  /** The lines of an edition that has these rows, once there is one. */
  async editionOf(name: SoakResource, rows: readonly string[]): Promise<string> {
    const [url = ''] = this.ground.urls;
    for (const end = performance.now() + 180_000; ;) {
      const answer = await fetch(`${url}/${name}/edition`);
      const bytes = Buffer.from(await answer.arrayBuffer());
      if (answer.status === 200) await this.watches[name].look(bytes, url);
      const { edition } = JSON.parse(bytes.toString()) as { edition?: string };
      const seen = edition === undefined ? undefined : this.watches[name].editions.get(edition);
      if (seen && isSame([...seen.rows.values()], rows)) return seen.head.edition;
      assert.ok(performance.now() < end, `no edition of ${name} has its rows`);
      await pause(AGAIN_MS);
    }
  }

  /** The lines of the edition in a mirror. */
  async mirrored(name: SoakResource): Promise<readonly string[]> {
    const objects = new FolderObjects(join(this.ground.folder, 'mirror'));
    const watch = new EditionWatch(
      objects,
      name,
      () => Promise.resolve(null),
      () => undefined,
    );
    const head = await objects.get(`${name}/edition.json`);
    assert.ok(head);
    await watch.look(head, 'a mirror', false);
    const { edition } = JSON.parse(Buffer.from(head).toString()) as { edition: string };
    return [...(watch.editions.get(edition)?.rows.values() ?? [])];
  }

  /** The lines of a copy in SQLite. */
  copied(name: SoakResource): readonly string[] {
    return queryFile(this.copyOf(name), `SELECT row FROM "${name}" ORDER BY id`).map(([row]) => String(row));
  }
}

function isSame(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((line, n) => line === right[n]);
}
