import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { passQuestions } from './worker-questions.ts';

/** The messages between workers and primary: a worker sends LISTENING, the primary sends STOP. */
const LISTENING = 'listening';
const STOP = 'stop';

/** The pause before an ended worker is replaced: a fault that ends all of them at once is not aggravated by restarts. */
const PAUSE_MS = 1_000;

interface ErrorLog {
  error(details: object, message: string): void;
}

/**
 * Starts workers, which are each a complete server on the same free port, and replaces one that ends. They share only what
 * is in the store (and in Redis). Resolves when all of them listen. Rejects when one ends before it listens.
 */
export async function startWorkers(count: number, port: number, log: ErrorLog): Promise<Workers> {
  const workers = new Workers(port, log);
  passQuestions();
  try {
    await workers.start(); // alone: it creates what is missing in the store
    await Promise.all(Array.from({ length: count - 1 }, () => workers.start()));
    return workers;
  } catch (error) {
    await workers.stop();
    throw error;
  }
}

class Workers {
  readonly #port: number;
  readonly #log: ErrorLog;
  readonly #running = new Set<Worker>();
  readonly #listening = new Set<Worker>();
  #hangUps = 0;
  #isStopped = false;

  constructor(port: number, log: ErrorLog) {
    this.#port = port;
    this.#log = log;
  }

  /** Starts a worker, which is replaced when it ends. Resolves when it listens. */
  async start(): Promise<void> {
    const worker = cluster.fork({ PORT: String(this.#port) });
    const before = this.#hangUps;
    this.#running.add(worker);
    const ended = endOf(worker).then((end) => {
      this.#running.delete(worker);
      this.#listening.delete(worker);
      return end;
    });
    const first = await Promise.race([ended, listeningOf(worker)]);
    if (first !== LISTENING) {
      if (first.error) throw first.error;
      throw new Error(
        `a worker process exited before it listened (${String(first.code ?? first.signal)}): see its output`,
      );
    }
    this.#listening.add(worker);
    if (this.#hangUps > before) worker.process.kill('SIGHUP');
    void ended.then((end) => {
      if (this.#isStopped) return;
      const { pid } = worker.process;
      this.#log.error({ workerPid: pid, ...end }, 'worker process exited: starting another');
      void this.#replace();
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const ends = [...this.#running].map(async (worker) => {
      const ended = endOf(worker);
      if (worker.isConnected()) worker.send(STOP, undefined, undefined, () => undefined); // it may be about to end
      await ended;
    });
    await Promise.all(ends);
  }

  /** Passes SIGHUP on to all workers: to one that starts when it listens, because a new process dies of it. */
  hangUp(): void {
    this.#hangUps++;
    for (const { process } of this.#listening) process.kill('SIGHUP');
  }

  /** Starts a worker after a pause, until one listens. Never rejects. */
  async #replace(): Promise<void> {
    for (let isStarted = false; !isStarted;) {
      await sleep(PAUSE_MS);
      if (this.#isStopped) return;
      try {
        await this.start();
        isStarted = true;
      } catch (error) {
        this.#log.error({ err: error }, 'worker process could not be started: trying again');
      }
    }
  }
}

/** Whether this process is one of several that share a port. */
export const isWorker = cluster.isWorker;

/** Reports to the primary, if there is one, that this worker listens. `untilPrimaryStops` notices the loss of the primary. */
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

interface WorkerEnd {
  readonly code: number | null;
  readonly signal: string | null;
  /** Why there never was a process, such as EMFILE. */
  readonly error?: Error;
}

/** Resolves when the process has ended, or when there is none because it could not be started. */
function endOf(worker: Worker): Promise<WorkerEnd> {
  return new Promise((resolve) => {
    worker.once('exit', (code, signal) => resolve({ code, signal }));
    worker.on('error', (error) => {
      // Else a message or a signal was not delivered: the process has ended, or is about to.
      if (worker.process.pid === undefined) resolve({ code: null, signal: null, error });
    });
  });
}

/** Resolves when the worker listens. Never rejects. */
function listeningOf(worker: Worker): Promise<typeof LISTENING> {
  return new Promise((resolve) => {
    worker.on('message', (message: unknown) => {
      if (message === LISTENING) resolve(LISTENING);
    });
  });
}
