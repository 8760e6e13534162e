import { Worker } from 'node:worker_threads';
import { asset } from '../../asset.ts';
import type { Action } from './actions.ts';
import type { TableSchema } from './schema.ts';

const THREAD = asset('editions/delta/parquet-thread.mjs');
/** Editions of a set that changes follow one another sooner. Beginning a thread takes 40 ms. */
const IDLE_MS = 10_000;

type Task =
  { readonly rows: Uint8Array; readonly schema: TableSchema } | { readonly actions: readonly Action[] };

interface Answer {
  readonly id: number;
  readonly file?: Uint8Array;
  readonly failure?: string;
}

interface Waiter {
  readonly resolve: (file: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The file of Parquet of a chunk: `rows` as NDJSON without spaces, in the columns of a schema and in `_rest`. It is made in a
 * thread, at some 100,000 rows of 250 bytes a second. Rejects when the rows are no such text.
 */
export function parquetOf(rows: Uint8Array, schema: TableSchema): Promise<Uint8Array> {
  return thread.make({ rows, schema });
}

/** The file of a checkpoint of a Delta log. */
export function checkpointOf(actions: readonly Action[]): Promise<Uint8Array> {
  return thread.make({ actions });
}

/** The thread, which begins with the first task, and ends some time behind the last one. It does not keep the process up. */
class ParquetThread {
  readonly #waiting = new Map<number, Waiter>();
  #worker: Worker | null = null;
  #idle: NodeJS.Timeout | undefined;
  #last = 0;

  make(task: Task): Promise<Uint8Array> {
    clearTimeout(this.#idle);
    const worker = (this.#worker ??= this.#begin());
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, ...task });
    });
  }

  #begin(): Worker {
    const worker = new Worker(THREAD, { name: 'delta' });
    worker.on('message', ({ id, file, failure }: Answer) => {
      const waiter = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#rest(worker);
      if (file) waiter?.resolve(file);
      else waiter?.reject(new Error(`No Parquet can be made: ${failure ?? 'the thread gave none'}`));
    });
    worker.on('error', (error) => {
      this.#worker = null;
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    });
    return worker;
  }

  #rest(worker: Worker): void {
    worker.unref();
    this.#idle = setTimeout(() => {
      this.#worker = null;
      void worker.terminate();
    }, IDLE_MS).unref();
  }
}

const thread = new ParquetThread();
