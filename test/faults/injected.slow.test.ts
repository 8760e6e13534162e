import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, storeUnavailable } from '../../src/base/errors.ts';
import { Exporter } from '../../src/exports/exporter.ts';
import { filesOf, type Job } from '../../src/exports/job.ts';
import { EXPORTS, Jobs } from '../../src/exports/jobs.ts';
import { exportSources } from '../../src/exports/order.ts';
import type { Reply } from '../../src/engine/edge.ts';
import type { JobQueue, QueueOptions } from '../../src/queue/queue.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { exportRows } from '../support/exports/exports.ts';
import { Faults, type Moment } from '../support/faults/faults.ts';
import { itemsOf } from '../support/resources/items-resource.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { testMongoStore } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { NEVER } from '../support/store/reading.ts';
import { serverOn, type EngineName, type StoreName } from '../support/process/server.ts';
import { PATH, usersAt } from '../support/users/users.ts';
import { insertDocuments } from '../support/store/items.ts';

/** The short form tries every third operation. */
const STEP = process.env.LONG ? 1 : 3;
/** The short form runs on the embedded store only, because both stores share the code that handles faults. */
const STORES: readonly StoreName[] = process.env.LONG ? ['sqlite', 'mongodb'] : ['sqlite'];
/** More operations than any run here has. A loop that reaches it would never end. */
const MOST_OPERATIONS = 500;
const ROWS = 600;
/** Several chunks even when compressed, because a compressor collects its output until a chunk is full. */
const STREAM_ROWS = 2_000;
/** The interval between polls. */
const PACE_MS = 2;
const away = () => storeUnavailable(new Error('a fault'));
const full = () => new AppError('insufficient-storage', 'a fault');

/**
 * Runs `run` with the first, the second, ... operation failing, until one run has no fault. Resolves with the
 * number of faults.
 */
async function withEachFault(
  faults: Faults,
  moment: Moment,
  error: () => Error,
  run: (k: number) => Promise<void>,
): Promise<number> {
  let failed = 0;
  for (let k = 1; k < MOST_OPERATIONS; k += STEP, failed++) {
    faults.arm(k, moment, error);
    await run(k);
    faults.disarm();
    if (!faults.struck) return failed;
  }
  throw new Error('there is always one more operation');
}

for (const storeName of STORES)
  test(`a failure of any store operation (${storeName}) loses nothing acknowledged, leaves nothing half written, and the next request works`, async (t) => {
    const uri = storeName === 'mongodb' ? await testMongo(t) : '';
    if (uri === null) return;
    const faults = new Faults();
    const server = await serverOn(
      t,
      { MONGODB_URI: uri, RATE_LIMIT: 'off' },
      { tapStore: (store) => faults.store(store) },
    );
    await server.insert(exportRows(ROWS));
    const users = usersAt(server.url);
    const reads = [
      '/items?limit=3&sort=price_desc',
      '/items?limit=2&offset=5&count=exact',
      '/items/i0000007',
      '/items/partitions?n=2',
      '/items/stream?fields=price',
      '/items/stream?format=csv&sort=price_asc',
    ];
    const expected = await Promise.all(reads.map(async (path) => (await server.get(path)).text()));
    /**
     * The names that each user may have: that of the last acknowledged write and of later unconfirmed ones. null:
     * no user.
     */
    const possible = new Map<string, Set<string | null>>();
    const writes = async (method: string, id: string, name: string | null) => {
      const { status, json } = await users.send(
        method,
        method === 'POST' ? PATH : `${PATH}/${id}`,
        name === null ? {} : { body: { name, email: 'a@b' } },
      );
      const before = possible.get(id) ?? new Set([null]);
      if (method === 'POST') {
        if (status === 201) possible.set((json as { id: string }).id, new Set([name]));
      } else if (status === 404) assert.ok(before.has(null), `${id} is not found`);
      else possible.set(id, status < 300 ? new Set([name]) : new Set([...before, name]));
      assert.ok([200, 201, 404, 503].includes(status), `${method}: ${status}`);
    };
    const check = async (path: string, whole: string) => {
      const response = await server.get(path);
      const text = await response.text();
      if (response.status === 200) assert.equal(text, whole, path);
      else
        assert.deepEqual(
          [response.status, (JSON.parse(text) as { code: string }).code],
          [503, 'store-unavailable'],
          path,
        );
      return response.status;
    };

    let operations = 0;
    for (const moment of ['before', 'after'] as const)
      operations += await withEachFault(faults, moment, away, async (k) => {
        await writes('PUT', 'a', `put ${k}`);
        await writes('PATCH', 'a', `patched ${k}`);
        await writes('PUT', 'b', `put ${k}`);
        await writes('DELETE', 'b', null);
        await writes('POST', '', `made ${k}`);
        for (const [at, path] of reads.entries()) await check(path, expected[at] ?? '');
        faults.disarm();
        for (const [id, names] of possible) {
          const { status, json } = await users.get(id);
          assert.ok(
            names.has(status === 404 ? null : (json as { name: string }).name),
            `${id} after fault ${k}`,
          );
        }
        for (const [at, path] of reads.entries()) assert.equal(await check(path, expected[at] ?? ''), 200);
        await server.released();
      });
    t.diagnostic(`${operations} operations failed`);
    assert.ok(operations >= 30 / STEP, `only ${operations} operations failed`);
  });

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`a failure of any write to its socket behind ${engine} cuts the stream, all is given back, and the next one is whole`, async (t) => {
    const faults = new Faults();
    const server = await serverOn(
      t,
      { MONGODB_URI: '', HTTP_ENGINE: engine, RATE_LIMIT: 'off' },
      {
        tap: (serve) => async (request) => {
          const reply: Reply = await serve(request);
          const { body } = reply;
          if (body.kind !== 'stream') return reply;
          return { ...reply, body: { ...body, run: (sink) => body.run(faults.port(sink)) } };
        },
      },
    );
    await server.insert(exportRows(STREAM_ROWS));
    let operations = 0;
    for (const coding of ['identity', 'gzip', 'br'])
      for (const query of ['', '?checkpoints=true', '?format=json']) {
        const ask = async () =>
          (await server.get(`/items/stream${query}`, { 'accept-encoding': coding })).text();
        const whole = await ask();
        operations += await withEachFault(faults, 'before', away, async () => {
          const came = await ask().catch((error: unknown) => {
            assert.ok(error instanceof TypeError, String(error)); // fetch: cut
            return null;
          });
          assert.equal(came, faults.struck ? null : whole);
          await server.released();
        });
        assert.equal(await ask(), whole);
      }
    t.diagnostic(`${operations} writes failed`);
    assert.ok(operations > 60 / STEP, `only ${operations} writes failed`);
  });

for (const storeName of STORES)
  test(`after a failure of any operation on its file or its record (${storeName}) an export is whole, once, or failed, and leaves nothing over`, async (t) => {
    const opened = storeName === 'mongodb' ? await testMongoStore(t) : await testSqlite(t);
    if (opened === null) return;
    const { store, slots } = opened;
    await insertDocuments(store.items, exportRows(ROWS));
    const atFiles = new Faults();
    const atRecords = new Faults();
    let clock = Date.UTC(2026, 0, 1);
    const now = () => new Date(clock);
    const records = await store.records(EXPORTS);
    const jobs = new Jobs({ records: atRecords.port(records), perClient: () => 1_000, now });
    const own = new Jobs({ records, perClient: () => 1_000, now });
    const exporter = new Exporter({
      jobs,
      now,
      sources: () => exportSources([itemsOf(store)]),
      files: atFiles.files(store.files),
      transcoder: createTranscoder(slots),
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      leaseMs: 10_000,
      ttlMs: 3_600_000,
      openQueue: atOnce,
      lookMs: 5_000,
      /** Time advances whenever nothing is done. */
      pause: async (ms, signal) => {
        await sleep(PACE_MS);
        signal.throwIfAborted();
        if (exporter.running === 0) clock += ms;
      },
    });
    const request = { resource: 'items', query: 'sort=id_asc', format: 'csv', compression: 'gzip' } as const;
    const settled = async (id: string): Promise<Job> => {
      for (;;) {
        const job = await own.get(id, NEVER);
        assert.ok(job);
        const names = await store.files.names();
        const needed = filesOf(job);
        if (
          ['complete', 'failed'].includes(job.state) &&
          names.length === needed.length &&
          exporter.running === 0
        )
          return job;
        await sleep(PACE_MS);
      }
    };
    const digest = async ({ name, bytes }: { name: string; bytes: number }) => {
      const hash = createHash('sha256');
      for await (const piece of store.files.read(name, 0, bytes)) hash.update(piece);
      return hash.digest('hex');
    };
    let reference: string | null = null;
    let operations = 0;
    try {
      for (const [faults, moment, error] of [
        [atFiles, 'before', away],
        [atFiles, 'before', full],
        [atFiles, 'after', away],
        [atRecords, 'before', away],
        [atRecords, 'before', full],
        [atRecords, 'after', away],
      ] as const)
        operations += await withEachFault(faults, moment, error, async (k) => {
          const { id } = await own.create('a client', () => Promise.resolve(request), NEVER);
          await exporter.offer(id);
          const job = await settled(id);
          faults.disarm();
          if (job.state === 'complete') {
            reference ??= job.file.sha256;
            assert.deepEqual([job.file.rows, job.file.sha256], [ROWS, reference], `fault ${k}`);
            assert.equal(await digest(job.file), reference);
          } else
            assert.ok(faults.struck && error === full && job.state === 'failed', `fault ${k}: ${job.state}`);
          await own.change(id, () => null);
          for (const name of filesOf(job)) await store.files.remove(name);
        });
    } finally {
      await exporter.close(); // before its store
    }
    t.diagnostic(`${operations} operations failed`);
    assert.ok(operations >= 60 / STEP, `only ${operations} operations failed`);
    assert.equal(slots.taken, 0);
  });

/** A queue without delays. The next check offers unfinished jobs again. */
function atOnce({ work }: Pick<QueueOptions, 'work'>): JobQueue {
  const running = new Map<string, Promise<void>>();
  return {
    add: (id) => {
      if (!running.has(id))
        running.set(
          id,
          work(id).then(() => void running.delete(id)),
        );
      return Promise.resolve();
    },
    close: async () => {
      await Promise.all(running.values());
    },
  };
}
