import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { buildProgram } from '../../bench/compiled.ts';
import type { FinishedFile, Job } from '../../src/exports/job.ts';
import type { Jobs } from '../../src/exports/jobs.ts';
import { PART_BYTES } from '../../src/store/bucket/writer.ts';
import type { FileStore } from '../../src/store/files.ts';
import { openAt, openWorker, STEPS, type Victim } from '../support/exports/export-victim.ts';
import { exportRows } from '../support/exports/exports.ts';
import { temporaryFolder } from '../support/directory.ts';
import { keysAt, newFiles } from '../support/store/bucket/bucket.ts';
import { Seaweed } from '../support/store/bucket/seaweed.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { NEVER } from '../support/store/reading.ts';
import { testRedis } from '../support/redis/redis.ts';
import { insertDocuments } from '../support/store/items.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Kills at each step, with each store and queue. */
const KILLS = process.env.LONG ? 30 : 1;
const ROWS = 5_000; // two pieces and more, several chunks of GridFS
const LOOK_MS = 250;
/** The latest kill after the begin of a step. Milliseconds. */
const LATEST_MS = 4;
const COMPRESSIONS = ['gzip', 'br', 'none'] as const;
type Place = readonly [store: 'sqlite' | 'mongodb', queue: 'local' | 'bullmq', files?: 'bucket'];
/** Two parts of a bucket, uncompressed, as NDJSON. */
const ROWS_IN_BUCKET = 50_000;
const PLACES: readonly Place[] = [
  ['sqlite', 'local'],
  ['mongodb', 'bullmq'],
  ['sqlite', 'local', 'bucket'],
  ...(process.env.LONG
    ? ([
        ['sqlite', 'bullmq'],
        ['mongodb', 'local'],
      ] as const)
    : []),
];

/** Bundles the program of the processes: so it starts in a fraction of the time. Its files stay where they are. */
async function bundledVictim(t: TestContext): Promise<string> {
  await buildProgram();
  const outfile = join(ROOT, `node_modules/.cache/victim-${process.pid}.mjs`); // there it finds its libraries
  t.after(() => rm(outfile, { force: true }));
  await build({
    entryPoints: [join(ROOT, 'test/support/exports/export-victim.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(join(ROOT, 'src/asset.ts'))) },
  });
  return outfile;
}

/** Runs a process until it is killed. */
function killed(program: string, victim: Victim): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, JSON.stringify(victim)], { timeout: 120_000 }, (error, _, said) => {
      if (error?.signal === 'SIGKILL') resolve();
      else reject(new Error(`the process at step ${victim.step} was not killed: ${said}`, { cause: error }));
    });
  });
}

test(
  `exports are whole and made once, and nothing is orphaned, after ${KILLS} kills at each step`,
  { concurrency: true },
  async (t) => {
    const program = await bundledVictim(t);
    await Promise.all(PLACES.map((place) => t.test(place.join(', '), (own) => kills(own, program, place))));
  },
);

async function kills(t: TestContext, program: string, [name, queue, files]: Place): Promise<void> {
  const seaweed = files === 'bucket' ? await Seaweed.start(t) : null;
  if (files === 'bucket' && !seaweed) return;
  const bucket = seaweed ? await newFiles(seaweed) : undefined;
  const rows = bucket === undefined ? ROWS : ROWS_IN_BUCKET;
  const redis = queue === 'bullmq' ? await testRedis(t) : null;
  const place = name === 'sqlite' ? await temporaryFolder(t) : await testMongo(t);
  if (place === null || (queue === 'bullmq' && !redis)) return;
  const opened = await openAt(place);
  const { store, slots } = opened;
  t.after(() => store.close());
  await insertDocuments(store.items, exportRows(rows));
  for (const step of STEPS)
    for (let kill = 0; kill < KILLS; kill++) {
      const compression =
        bucket === undefined ? (COMPRESSIONS[(STEPS.indexOf(step) + kill) % 3] ?? 'none') : 'none';
      const format = bucket === undefined ? 'csv' : 'ndjson';
      const request = { resource: 'items', query: 'sort=price_desc', format, compression } as const;
      const delayMs = Math.random() * (LATEST_MS + 1) - 1;
      await killed(program, { place, redis: redis?.url, bucket, request, step, delayMs });
    }
  t.diagnostic(`${STEPS.length * KILLS} processes were killed`);

  const { jobs, files: stored, exporter } = await openWorker(opened, { redis: redis?.url, bucket }, LOOK_MS);
  t.after(() => exporter.close());
  const left = await settled(jobs);
  const sums = new Set<string>();
  for (const job of left) {
    assert.ok(job.state === 'complete', JSON.stringify(job));
    assert.deepEqual([job.file.rows, await digestOf(stored, job.file)], [rows, job.file.sha256]);
    assert.ok(bucket === undefined || job.file.bytes > PART_BYTES, 'more than one part');
    sums.add(`${job.request.compression} ${job.file.sha256}`);
  }
  assert.ok(sums.size <= COMPRESSIONS.length, 'files of the same order have the same bytes');
  const named = left.map((job) => (job.state === 'complete' ? job.file.name : '')).toSorted();
  for (let names: string[] = []; names.join() !== named.join();) {
    await sleep(LOOK_MS); // a look removes the others
    names = (await stored.names()).toSorted();
    assert.ok(named.every((one) => names.includes(one)));
  }
  if (bucket !== undefined)
    assert.deepEqual(
      (await keysAt(t, bucket)()).map((key) => key.replace(/^.*\//, '')),
      named,
      'no upload and no part is left',
    );
  if (name === 'mongodb') {
    const chunks = testClient(t, place).db().collection('exports.chunks');
    const ofFiles: unknown[] = await chunks.distinct('files_id');
    assert.deepEqual(ofFiles.toSorted(), named, 'no chunk is left of another file');
  }
  assert.deepEqual(new Set(await settled(jobs)), new Set(left), 'what is complete is not made again');
  await exporter.close();
  assert.equal(slots.taken, 0);
}

/** All jobs, once all of them are final. */
async function settled(jobs: Jobs): Promise<readonly Job[]> {
  for (;;) {
    const all = await jobs.all(NEVER);
    if (all.every(({ state }) => state !== 'queued' && state !== 'running')) return all;
    await sleep(50);
  }
}

async function digestOf(files: FileStore, { name, bytes }: FinishedFile): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of files.read(name, 0, bytes)) hash.update(piece);
  return hash.digest('hex');
}
