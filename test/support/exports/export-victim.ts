/**
 * A process that orders an export, makes it and removes it, and is killed at a step. Its argument is a Victim as JSON.
 * Exports of killed processes that it finds in the store are its work, too.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Exporter } from '../../../src/exports/exporter.ts';
import { removeLeftovers } from '../../../src/exports/file.ts';
import type { ExportRequest } from '../../../src/exports/job.ts';
import { EXPORTS, Jobs } from '../../../src/exports/jobs.ts';
import { exportSources } from '../../../src/exports/order.ts';
import { queueOpener } from '../../../src/queue/open.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { withOverrides } from '../store/with-overrides.ts';
import { withItems, type StoreWithItems } from '../store/with-items.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import type { FileStore } from '../../../src/store/files.ts';
import { openFiles } from '../../../src/server/open-files.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import type { Records } from '../../../src/store/records.ts';
import { itemsOf } from '../resources/items-resource.ts';
import { placeOf } from '../store/bucket/bucket.ts';

/** What a process does with the record and the file of its export, in this order. */
export const STEPS = [
  ...['order', 'claim', 'names', 'create', 'write', 'beat', 'finish', 'complete', 'delete', 'remove'],
] as const;
export type Step = (typeof STEPS)[number];
type Reached = (step: Step) => void | Promise<void>;

export interface Victim {
  /** The directory of an embedded store, or the URI of a MongoDB. */
  readonly place: string;
  readonly redis: string | undefined;
  /** FILES, where files lie in a bucket. */
  readonly bucket: string | undefined;
  readonly request: ExportRequest;
  readonly step: Step;
  /** Milliseconds from the begin of the step to the kill. Below 0: before the step begins. */
  readonly delayMs: number;
}

/** A lease so short that tests need not wait long. */
const LEASE_MS = 1_000;
const DAY_MS = 86_400_000;
const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

export async function openAt(
  place: string,
): Promise<{ readonly store: StoreWithItems; readonly slots: Slots }> {
  const slots = new Slots();
  if (!place.startsWith('mongodb')) {
    const { openSqlite } = await import('../../../src/store/sqlite/sqlite-store.ts');
    return { store: await withItems(await openSqlite({ directory: place, slots })), slots };
  }
  const { connectMongo } = await import('../../../src/store/mongo/mongo-store.ts');
  const store = await connectMongo({
    uri: place,
    slots,
    manageIndexes: true,
    onWarning: () => undefined,
  });
  return { store: await withItems(store), slots };
}

/** What works on the exports of a store. `reached` is called when a step begins. */
export async function openWorker(
  { store, slots }: Awaited<ReturnType<typeof openAt>>,
  { redis, bucket }: Pick<Victim, 'redis' | 'bucket'>,
  lookMs: number,
  reached: Reached = () => undefined,
): Promise<{ readonly jobs: Jobs; readonly files: FileStore; readonly exporter: Exporter }> {
  const records = steppedRecords(await store.records(EXPORTS), reached);
  const jobs = new Jobs({ records, perClient: () => 100_000, now: () => new Date() });
  const place = bucket === undefined ? null : placeOf({ FILES: bucket });
  const files = steppedFiles(await openFiles(place, store, () => jobs.storeId()), reached);
  const settings = { EXPORT_CONCURRENCY: 4, ...(redis !== undefined && { REDIS_URL: redis }) };
  const exporter = new Exporter({
    jobs,
    files,
    lookMs,
    log: QUIET,
    now: () => new Date(),
    ttlMs: DAY_MS,
    leaseMs: LEASE_MS,
    sources: () => exportSources([itemsOf(store)]),
    transcoder: createTranscoder(slots),
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
    openQueue: await queueOpener(settings, QUIET, async () => String(await jobs.storeId())),
  });
  return { jobs, files, exporter };
}

function steppedFiles(files: FileStore, reached: Reached): FileStore {
  return withOverrides(files, {
    listingMs: 0,
    create: async (name, signal) => {
      await reached('create');
      const writer = await files.create(name, signal);
      return withOverrides(writer, {
        write: async (bytes) => {
          await reached('write');
          await writer.write(bytes);
        },
        finish: async () => {
          await reached('finish');
          await writer.finish();
        },
      });
    },
    remove: async (name) => {
      await reached('remove');
      await files.remove(name);
    },
    names: async (stem) => {
      if (stem !== undefined) await reached('names');
      return files.names(stem);
    },
  });
}

function steppedRecords(records: Records, reached: Reached): Records {
  return {
    ...records,
    change: async (id, change) => {
      // What the change does is known before it is written: one process at a time works on a store here.
      const { after } = await records.change(id, () => 'keep');
      const next = change(after);
      const step = next === 'keep' ? null : stepOf(stateOf(after), stateOf(next));
      if (step) await reached(step);
      return records.change(id, change);
    },
  };
}

function stateOf(row: Uint8Array | null): unknown {
  return row && BSON.deserialize(row).state;
}

function stepOf(before: unknown, after: unknown): Step | null {
  if (after === null) return 'delete';
  if (after === 'running') return before === 'running' ? 'beat' : 'claim';
  return after === 'complete' ? 'complete' : after === 'queued' && before === null ? 'order' : null;
}

async function run({ place, redis, bucket, request, step, delayMs }: Victim): Promise<void> {
  const die = () => process.kill(process.pid, 'SIGKILL');
  const { jobs, files, exporter } = await openWorker(await openAt(place), { redis, bucket }, DAY_MS, (at) => {
    // A short export has no heartbeat: it is held until one comes.
    if (step === 'beat' && at === 'finish') return sleep(DAY_MS);
    if (at === step && delayMs < 0) die();
    else if (at === step) setTimeout(die, delayMs);
    return undefined;
  });
  const { id } = await jobs.create('ada', () => Promise.resolve(request), new AbortController().signal);
  await exporter.offer(id);
  while ((await jobs.current(id))?.state !== 'complete') await sleep(5);
  await jobs.change(id, () => null);
  await removeLeftovers(id, { jobs, files });
}

const [, , victim] = process.argv;
if (victim?.startsWith('{')) await run(JSON.parse(victim) as Victim);
