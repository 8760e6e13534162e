import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { passMetrics } from './worker-metrics.ts';

/** The messages between workers and primary: a worker sends LISTENING, the primary sends STOP. */
const LISTENING = 'listening';
const STOP = 'stop';

/** The pause before an ended worker is replaced: a fault that ends all of them at once is not aggravated by restarts. */
const PAUSE_MS = 1_000;

/**
 * Starts workers, which are each a complete server on the same free port, and replaces one that ends. They share only what
 * is in the store (and in Redis). Resolves when all of them listen. Rejects when one ends before it listens.
 */
export async function startWorkers(
  count: number,
  port: number,
  log: { error(details: object, message: string): void },
) {
  const running = new Set<Worker>();
  const listening = new Set<Worker>();
  let hangUps = 0;
  let isStopped = false;

  /** Starts a worker, which is replaced when it ends. Resolves when it listens. */
  const start = async (): Promise<void> => {
    const worker = cluster.fork({ PORT: String(port) });
    const before = hangUps;
    running.add(worker);
    const ended = once(worker, 'exit').then(([code, signal]: unknown[]) => {
      running.delete(worker);
      listening.delete(worker);
      return { code, signal };
    });
    const first = await Promise.race([ended, listeningOf(worker)]);
    if (first !== LISTENING)
      throw new Error(
        `a worker process exited before it listened (${String(first.code ?? first.signal)}): see its output`,
      );
    listening.add(worker);
    if (hangUps > before) worker.process.kill('SIGHUP');
    void ended.then((end) => {
      if (isStopped) return;
      log.error({ workerPid: worker.process.pid, ...end }, 'worker process exited: starting another');
      void replace();
    });
  };

  /** Starts a worker after a pause, until one listens. Never rejects. */
  const replace = async (): Promise<void> => {
    for (let isStarted = false; !isStarted;) {
      await sleep(PAUSE_MS);
      if (isStopped) return;
      try {
        await start();
        isStarted = true;
      } catch (error) {
        log.error({ err: error }, 'worker process could not be started: trying again');
      }
    }
  };

  const stop = async (): Promise<void> => {
    isStopped = true;
    const ends = [...running].map(async (worker) => {
      const ended = once(worker, 'exit');
      if (worker.isConnected()) worker.send(STOP);
      await ended;
    });
    await Promise.all(ends);
  };

  /** Passes SIGHUP on to all workers: to one that starts when it listens, because a new process dies of it. */
  const hangUp = (): void => {
    hangUps++;
    for (const { process } of listening) process.kill('SIGHUP');
  };

  passMetrics();
  try {
    await start(); // alone: it creates what is missing in the store
    await Promise.all(Array.from({ length: count - 1 }, start));
    return { stop, hangUp };
  } catch (error) {
    await stop();
    throw error;
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

async function listeningOf(worker: Worker): Promise<typeof LISTENING> {
  for (;;) {
    const [message] = (await once(worker, 'message')) as [unknown];
    if (message === LISTENING) return LISTENING;
  }
}
