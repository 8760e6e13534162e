import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { TestContext } from 'node:test';
import { Exporter } from '../../../src/exports/exporter.ts';
import type { Job } from '../../../src/exports/job.ts';
import { EXPORTS, Jobs } from '../../../src/exports/jobs.ts';
import { exportSources } from '../../../src/exports/order.ts';
import type { Work } from '../../../src/queue/queue.ts';
import type { Resource } from '../../../src/resources/query/resource.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { withOverrides } from '../store/with-overrides.ts';
import { withItems, type StoreWithItems } from '../store/with-items.ts';
import type { FileStore } from '../../../src/store/files.ts';
import { openSqlite } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Records } from '../../../src/store/records.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import { itemsOf, readerOf } from '../resources/items-resource.ts';
import type { RowReader, From, Plan } from '../../../src/store/store.ts';
import { temporaryFolder } from '../directory.ts';
import { openStore } from '../store/mongo/mongo.ts';
import { testMongo } from '../store/mongo/mongod.ts';
import type { StoreName } from '../process/server.ts';

export const LEASE_MS = 10_000;

/** A store as opened by one process. */
export interface Handle {
  readonly store: StoreWithItems;
  readonly slots: Slots;
  readonly exports: Records;
}

/**
 * One store through two handles, as two processes have it. Resolves with null and skips the test when there
 * is no such store.
 */
export async function twoHandles(t: TestContext, name: StoreName): Promise<[Handle, Handle] | null> {
  if (name === 'sqlite') {
    const directory = await temporaryFolder(t);
    const handles: [Handle, Handle] = [await openDirectory(directory), await openDirectory(directory)];
    t.after(() => Promise.all(handles.map(({ store }) => store.close())));
    return handles;
  }
  const uri = await testMongo(t);
  if (uri === null) return null;
  return [await handleOf(await openStore(t, uri)), await handleOf(await openStore(t, uri))];
}

/** Opens an embedded store. The caller closes it. */
export async function openDirectory(directory: string): Promise<Handle> {
  const slots = new Slots();
  return handleOf({ store: await withItems(await openSqlite({ directory, slots })), slots });
}

export async function handleOf({ store, slots }: Omit<Handle, 'exports'>): Promise<Handle> {
  return { store, slots, exports: await store.records(EXPORTS) };
}

/** Functions that a test places between a worker and its store. Each may delay or fail. */
export interface Hooks {
  readonly begins?: (name: string) => void | Promise<void>;
  /** Called before the bytes of a piece are written to the file. Pieces are counted from 1 in each file. */
  readonly writes?: (piece: number) => void | Promise<void>;
  readonly reads?: (from: From, plan: Plan) => void | Promise<void>;
  /** Called before the names of files are listed. */
  readonly names?: () => void | Promise<void>;
  readonly now?: () => Date;
  /** What can be exported beside items. */
  readonly resources?: readonly { readonly resource: Resource }[];
}

/**
 * An exporter whose queue and clock are controlled by the test: the test starts its work and its heartbeats.
 */
export class Worker {
  readonly jobs: Jobs;
  readonly files: FileStore;
  readonly work: Work;
  readonly #exporter: Exporter;
  /** The pending pauses, in milliseconds, and a function that ends each. */
  #pauses: { readonly ms: number; readonly end: () => void }[] = [];
  readonly #paused = new EventEmitter();

  constructor({ store, slots, exports }: Handle, hooks: Hooks = {}) {
    const { items } = store;
    const now = hooks.now ?? (() => new Date());
    this.files = store.files;
    this.jobs = new Jobs({ records: exports, perClient: () => 100, now });
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    let work: Work = () => Promise.resolve(null);
    const streams: RowReader = {
      read: async (plan, from, ...more) => {
        await hooks.reads?.(from, plan);
        return items.read(plan, from, ...more);
      },
    };
    const resources = [itemsOf(store, (rows) => readerOf(streams, rows)), ...(hooks.resources ?? [])];
    const sources = exportSources(resources);
    this.#exporter = new Exporter({
      now,
      log,
      jobs: this.jobs,
      files: hooked(store.files, hooks),
      sources: () => sources,
      transcoder: createTranscoder(slots),
      leaseMs: LEASE_MS,
      ttlMs: LEASE_MS * 100,
      pause: (ms, signal) => this.#pause(ms, signal),
      openQueue: (options) => {
        ({ work } = options);
        return { add: () => Promise.resolve(), close: () => Promise.resolve() };
      },
    });
    this.work = work;
  }

  /** Resolves when something waits for `ms` milliseconds. */
  async paused(ms: number): Promise<void> {
    if (!this.#pauses.some((one) => one.ms === ms)) await once(this.#paused, String(ms));
  }

  /** Ends a pause of `ms` milliseconds. Resolves when the work behind it is done and pauses again, for `nextMs`. */
  async beat(ms: number, nextMs = ms): Promise<void> {
    await this.paused(ms);
    const again = once(this.#paused, String(nextMs));
    const pause = this.#pauses.find((one) => one.ms === ms);
    if (!pause) throw new Error(`nothing waits for ${ms} ms`);
    this.#pauses = this.#pauses.filter((one) => one !== pause);
    pause.end();
    await again;
  }

  /** The content of the file of a job, which must be complete. */
  async textOf(job: Job | null): Promise<string> {
    assert.ok(job?.state === 'complete', JSON.stringify(job));
    const chunks: Buffer[] = [];
    for await (const chunk of this.files.read(job.file.name, 0, job.file.bytes))
      chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks).toString();
  }

  close(): Promise<void> {
    return this.#exporter.close();
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const pause = { ms, end: resolve };
      this.#pauses.push(pause);
      signal.addEventListener('abort', () => {
        this.#pauses = this.#pauses.filter((one) => one !== pause);
        reject(signal.reason as Error);
      });
      this.#paused.emit(String(ms));
    });
  }
}

function hooked(files: FileStore, { begins, writes, names }: Hooks): FileStore {
  return withOverrides(files, {
    create: async (name) => {
      await begins?.(name);
      const writer = await files.create(name);
      let piece = 0;
      return withOverrides(writer, {
        write: async (bytes) => {
          if (bytes.length > 0) await writes?.(++piece);
          await writer.write(bytes);
        },
      });
    },
    names: async (...call) => {
      await names?.();
      return files.names(...call);
    },
  });
}
