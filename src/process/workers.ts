import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { passMetrics } from './worker-metrics.ts';

/** The messages between workers and primary: a worker sends LISTENING, the primary sends STOP. */
const LISTENING = 'listening';
const STOP = 'stop';

export interface WorkersOptions {
  readonly count: number;
  /** A port that is free. */
  readonly port: number;
  readonly log: { error(details: object, message: string): void };
}

/** How a worker ended, and for how long it had listened. */
interface End {
  readonly code: unknown;
  readonly signal: unknown;
  readonly listenedMs: number;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
/** A worker that has listened for this long, in milliseconds, counts as working, whatever ends it later. */
const SETTLED_MS = 10_000;

/**
 * The pauses before an ended worker is replaced. They grow until a worker has settled, so that restarts do
 * not aggravate a fault that ends all workers at once.
 */
export class Pauses {
  #nextMs = FIRST_PAUSE_MS;

  /** Milliseconds to wait. `listenedMs` is how long the ended worker had listened, 0 when it never did. */
  after(listenedMs: number): number {
    const ms = listenedMs >= SETTLED_MS ? FIRST_PAUSE_MS : this.#nextMs;
    this.#nextMs = Math.min(2 * ms, LONGEST_PAUSE_MS);
    return ms;
  }
}

/**
 * The primary process, which only manages its workers. Each worker is a complete server on the same port. A
 * worker that ends is replaced. Workers know nothing of each other, and share only what is in the store (and
 * in Redis).
 */
export class Workers {
  readonly #options: WorkersOptions;
  readonly #running = new Set<Worker>();
  readonly #listening = new Set<Worker>();
  readonly #pauses = new Pauses();
  #hangUps = 0;
  #stopping = false;

  private constructor(options: WorkersOptions) {
    this.#options = options;
  }

  /**
   * Starts the workers. Resolves when all of them listen. Rejects when a worker ends before it listens.
   */
  static async start(options: WorkersOptions): Promise<Workers> {
    const { count, port } = options;
    const workers = new Workers(options);
    passMetrics();
    try {
      await workers.#start(port); // alone: it creates what is missing in the store
      await Promise.all(Array.from({ length: count - 1 }, () => workers.#start(port)));
      return workers;
    } catch (error) {
      await workers.stop();
      throw error;
    }
  }

  /** Asks all workers to stop gracefully. Resolves when all of them have ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const ends = [...this.#running].map(async (worker) => {
      const ended = once(worker, 'exit');
      if (worker.isConnected()) worker.send(STOP);
      await ended;
    });
    await Promise.all(ends);
  }

  /** Passes SIGHUP on to all workers: to one that starts when it listens, because a new process dies of it. */
  hangUp(): void {
    this.#hangUps++;
    for (const { process } of this.#listening) process.kill('SIGHUP');
  }

  /** Starts a worker, which is replaced when it ends. Resolves when it listens. */
  async #start(port: number): Promise<void> {
    const worker = cluster.fork({ PORT: String(port) });
    const hangUps = this.#hangUps;
    this.#running.add(worker);
    const ended = once(worker, 'exit').then(([code, signal]: unknown[]) => {
      this.#running.delete(worker);
      this.#listening.delete(worker);
      return { code, signal };
    });
    const first = await Promise.race([ended, listeningOf(worker)]);
    if (first !== LISTENING)
      throw new Error(
        `a worker process exited before it listened (${String(first.code ?? first.signal)}): see its output`,
      );
    this.#listening.add(worker);
    if (this.#hangUps > hangUps) worker.process.kill('SIGHUP');
    const since = performance.now();
    void ended.then((how) => this.#replace(worker, port, { ...how, listenedMs: performance.now() - since }));
  }

  #isStopping(): boolean {
    return this.#stopping;
  }

  /** Replaces a worker. Never rejects: a start that fails is tried again later. */
  async #replace(worker: Worker, port: number, { code, signal, listenedMs }: End): Promise<void> {
    if (this.#isStopping()) return;
    this.#options.log.error(
      { workerPid: worker.process.pid, code, signal },
      'worker process exited: starting another',
    );
    for (let pauseMs = this.#pauses.after(listenedMs); ; pauseMs = this.#pauses.after(0)) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
      if (this.#isStopping()) return;
      try {
        await this.#start(port);
        return;
      } catch (error) {
        this.#options.log.error({ err: error }, 'worker process could not be started: trying again');
      }
    }
  }
}

/** Whether this process is one of several that share a port. */
export const isWorker = cluster.isWorker;

/**
 * Reports to the primary, if there is one, that this worker listens. A failed send is ignored, since
 * `untilPrimaryStops` notices the loss of the primary.
 */
export function reportListening(): void {
  process.send?.(LISTENING, undefined, undefined, () => undefined);
}

/** Lets this worker end. The channel to the primary keeps the process alive while it is open. */
export function leavePrimary(): void {
  if (process.connected) process.disconnect();
}

/** Resolves when the primary asks this worker to stop, or when the primary is gone. */
export function untilPrimaryStops(): Promise<string> {
  return new Promise((resolve) => {
    if (!cluster.worker) return;
    cluster.worker.exitedAfterDisconnect = true; // otherwise node ends this process at once when the primary is gone
    const gone = () => resolve('the primary process has exited');
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
