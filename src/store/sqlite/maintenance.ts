import { Worker } from 'node:worker_threads';
import { join } from 'node:path';
import { retryBusy } from './retry-busy.ts';

const THREAD = new URL('./worker.mjs', import.meta.url);

interface Answer {
  readonly id: number;
  readonly failure?: { readonly message: string; readonly errcode?: number };
}

/** Runs long statements in a thread that has a connection of its own. The thread begins with the first of them. */
export class Maintenance {
  readonly #path: string;
  #worker: Worker | null = null;
  readonly #waiting = new Map<number, { resolve: () => void; reject: (reason: unknown) => void }>();
  #asked = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Runs statements. A failure undoes the transaction that they began. */
  run(sql: string): Promise<void> {
    return retryBusy(() => this.#ask(sql));
  }

  /** Closes the thread's connection. */
  async close(): Promise<void> {
    const worker = this.#worker;
    if (!worker) return;
    this.#worker = null;
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    worker.ref();
    worker.postMessage({ id: 0, sql: null });
    await ended;
  }

  #ask(sql: string): Promise<void> {
    const worker = (this.#worker ??= this.#start());
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, sql });
    });
  }

  #start(): Worker {
    const workerData = { path: this.#path, directory: join(this.#path, '..') };
    const worker = new Worker(THREAD, { workerData, execArgv: [] });
    worker.on('message', ({ id, failure }: Answer) => {
      const { resolve, reject } = this.#take(id);
      if (failure) reject(Object.assign(new Error(failure.message), { errcode: failure.errcode }));
      else resolve();
      if (this.#waiting.size === 0) worker.unref(); // does not keep the process running
    });
    worker.on('error', (error) => {
      this.#worker = null;
      for (const id of [...this.#waiting.keys()]) this.#take(id).reject(error);
    });
    return worker;
  }

  #take(id: number) {
    const waiting = this.#waiting.get(id);
    if (!waiting) throw new TypeError('an answer that nobody asked for');
    this.#waiting.delete(id);
    return waiting;
  }
}
