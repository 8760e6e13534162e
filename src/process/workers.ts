import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { cannotListen } from '../engine/cannot-listen.ts';
import { passMetrics } from './worker-metrics.ts';

/** What a worker tells once it listens, and what it is told when it is to stop. */
const LISTENING = 'listening';
const STOP = 'stop';

export interface WorkersOptions {
  readonly count: number;
  readonly host: string;
  /** 0: one that is free. */
  readonly port: number;
  readonly log: { error(details: object, message: string): void };
}

/** How a worker ended, and how long it had listened. */
interface End {
  readonly code: unknown;
  readonly signal: unknown;
  readonly listenedMs: number;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
/** A worker that listened for so long has worked, whatever it ended of. */
const SETTLED_MS = 10_000;

/**
 * How long to wait before a worker is started in place of one that ended: longer each time, until one has settled. What ends
 * them all at once is not made worse by their starts.
 */
export class Pauses {
  #nextMs = FIRST_PAUSE_MS;

  /** Milliseconds; `listenedMs` is how long the one that ended had listened, 0 when it never did. */
  after(listenedMs: number): number {
    const ms = listenedMs >= SETTLED_MS ? FIRST_PAUSE_MS : this.#nextMs;
    this.#nextMs = Math.min(2 * ms, LONGEST_PAUSE_MS);
    return ms;
  }
}

/**
 * The process that has no work but its workers: each is the whole server, on the same port. One that ends is replaced.
 * They know nothing of one another, and share only what is in the store (and in Redis).
 */
export class Workers {
  readonly #options: WorkersOptions;
  readonly #running = new Set<Worker>();
  readonly #pauses = new Pauses();
  #stopping = false;

  private constructor(options: WorkersOptions) {
    this.#options = options;
  }

  /** Resolves when all listen. Rejects when the address is taken, or the first one ends before it listens. */
  static async start(options: WorkersOptions): Promise<Workers> {
    const workers = new Workers(options);
    passMetrics();
    try {
      const port = await freePort(options.host, options.port);
      await workers.#start(port); // alone: it makes what is missing in the store
      await Promise.all(Array.from({ length: options.count - 1 }, () => workers.#start(port)));
      return workers;
    } catch (error) {
      await workers.stop();
      throw error;
    }
  }

  /** Asks all to stop in order; resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const ends = [...this.#running].map(async (worker) => {
      const ended = once(worker, 'exit');
      if (worker.isConnected()) worker.send(STOP);
      await ended;
    });
    await Promise.all(ends);
  }

  /** Starts a worker that is replaced when it ends; resolves when it listens. */
  async #start(port: number): Promise<void> {
    const worker = cluster.fork({ PORT: String(port) });
    this.#running.add(worker);
    const ended = once(worker, 'exit').then(([code, signal]: unknown[]) => {
      this.#running.delete(worker);
      return { code, signal };
    });
    const told = await Promise.race([ended, listeningOf(worker)]);
    if (told !== LISTENING)
      throw new Error(
        `a worker ended before it listened (${String(told.code ?? told.signal)}); see its output`,
      );
    const since = performance.now();
    void ended.then((how) => this.#replace(worker, port, { ...how, listenedMs: performance.now() - since }));
  }

  #isStopping(): boolean {
    return this.#stopping;
  }

  /** Never rejects: one that cannot be started now is tried again later. */
  async #replace(worker: Worker, port: number, { code, signal, listenedMs }: End): Promise<void> {
    if (this.#isStopping()) return;
    this.#options.log.error({ worker: worker.process.pid, code, signal }, 'a worker ended and is replaced');
    for (let pauseMs = this.#pauses.after(listenedMs); ; pauseMs = this.#pauses.after(0)) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
      if (this.#isStopping()) return;
      try {
        await this.#start(port);
        return;
      } catch (error) {
        this.#options.log.error({ err: error }, 'a worker could not be replaced yet');
      }
    }
  }
}

/** Whether this process is one of several that share a port. */
export const isWorker = cluster.isWorker;

/** Tells the primary that this worker listens; nothing when there is none. That it is gone is told by `untilToldToStop`. */
export function tellListening(): void {
  process.send?.(LISTENING, undefined, undefined, () => undefined);
}

/** Lets this worker end: as long as it can hear the primary, it goes on. */
export function leavePrimary(): void {
  if (process.connected) process.disconnect();
}

/** Resolves when the primary asks this worker to stop, or is gone itself. */
export function untilToldToStop(): Promise<string> {
  return new Promise((resolve) => {
    if (!cluster.worker) return;
    cluster.worker.exitedAfterDisconnect = true; // else node ends this process at once when the primary is gone
    const gone = () => resolve('the primary process is gone');
    process.once('disconnect', gone);
    if (!process.connected) gone();
    process.on('message', (message) => {
      if (message === STOP) resolve(STOP);
    });
  });
}

async function listeningOf(worker: Worker): Promise<typeof LISTENING> {
  for (;;) {
    const [message] = (await once(worker, 'message')) as [unknown];
    if (message === LISTENING) return LISTENING;
  }
}

/**
 * The port, or a free one for 0. Rejects when it is taken: workers share theirs with whoever does so, too, and another
 * server there would take a part of the requests. (A socket that uWebSockets.js gives a free port is not shared.)
 */
async function freePort(host: string, port: number): Promise<number> {
  const probe = createServer();
  probe.listen({ host, port, exclusive: true });
  try {
    await once(probe, 'listening');
  } catch (error) {
    throw cannotListen(host, port, error);
  }
  const free = (probe.address() as AddressInfo).port;
  probe.close();
  await once(probe, 'close');
  return free;
}
