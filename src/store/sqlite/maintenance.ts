import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { join } from 'node:path';
import { asset } from '../../asset.ts';
import { retryBusy } from './retry-busy.ts';

const THREAD = asset('store/sqlite/worker.mjs');

/** Why a statement failed. Null: it did not. */
type Failure = { readonly message: string; readonly errcode?: number } | null;

/**
 * Runs long statements, one at a time, in a thread that has a connection of its own. The thread begins with the first of
 * them.
 */
export class Maintenance {
  readonly #path: string;
  #worker: Worker | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** Runs statements. A failure undoes the transaction that they began. To be called when the call before has ended. */
  run(sql: string): Promise<void> {
    return retryBusy(() => this.#ask(sql));
  }

  /** Closes the thread's connection. */
  async close(): Promise<void> {
    const worker = this.#worker;
    if (!worker) return;
    worker.ref();
    worker.postMessage(null);
    await once(worker, 'exit');
  }

  async #ask(sql: string): Promise<void> {
    const worker = (this.#worker ??= this.#start());
    worker.ref();
    worker.postMessage(sql);
    const [failure] = (await once(worker, 'message')) as [Failure];
    worker.unref(); // does not keep the process running
    if (failure) throw Object.assign(new Error(failure.message), { errcode: failure.errcode });
  }

  #start(): Worker {
    const workerData = { path: this.#path, directory: join(this.#path, '..') };
    return new Worker(THREAD, { workerData, execArgv: [] }).on('error', () => (this.#worker = null));
  }
}
