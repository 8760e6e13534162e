import { once } from 'node:events';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { asset } from '../../../asset.ts';
import { withCode, type SqlRow, type SqlValue } from './connection.ts';
import { retryBusy } from './errors.ts';

const THREAD = asset('store/sqlite/file/worker.mjs');

/** Rows that lie one behind the other, as they go to a thread. */
export interface PackedRows {
  readonly numbers: Float64Array;
  readonly keys: Uint8Array;
  /** Where each key ends: of each row its own, then those in the indexes. An empty one is null. */
  readonly keyEnds: Int32Array;
  readonly documents: Uint8Array;
  readonly documentEnds: Int32Array;
}

/** What the thread is asked: to run statements, of which one makes an index, to give the rows of a query, or to insert rows. */
interface Order {
  readonly sql: string;
  readonly isIndex?: boolean;
  readonly values?: readonly SqlValue[];
  readonly rows?: PackedRows;
}

/** The rows of a query, or why a statement failed. */
interface Answer {
  readonly rows?: readonly SqlRow[];
  readonly failure?: { readonly message: string; readonly errcode?: number };
}

/** Runs long statements on a file, one at a time, in a thread with a connection of its own, begun by the first. */
export class Maintenance {
  readonly #path: string;
  #worker: Worker | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** Runs statements. A failure undoes the transaction that they began. To be called when the call before has ended. */
  async run(sql: string): Promise<void> {
    await retryBusy(() => this.#ask({ sql }));
  }

  /** Runs the statement that makes an index. */
  async makeIndex(sql: string): Promise<void> {
    await retryBusy(() => this.#ask({ sql, isIndex: true }));
  }

  /** The rows of one query. Its text must not come from a request. */
  query(sql: string, ...values: SqlValue[]): Promise<readonly SqlRow[]> {
    return retryBusy(() => this.#ask({ sql, values }));
  }

  /** Inserts rows into columns of a table in one transaction: those of the number, the key and the document first. */
  async insert(table: string, columns: readonly string[], rows: PackedRows): Promise<void> {
    // `or fail`: the transaction is undone as a whole. SQLite would write a journal of its own for each statement.
    await retryBusy(() => this.#ask({ sql: `insert or fail into ${table}(${columns.join()})`, rows }));
  }

  async close(): Promise<void> {
    if (!this.#worker) return;
    this.#worker.ref();
    this.#worker.postMessage(null);
    await once(this.#worker, 'exit');
  }

  async #ask(asked: Order): Promise<readonly SqlRow[]> {
    const worker = (this.#worker ??= this.#start());
    worker.ref();
    worker.postMessage(asked);
    const [{ rows = [], failure }] = (await once(worker, 'message')) as [Answer];
    worker.unref(); // does not keep the process running
    if (failure) throw withCode(Object.assign(new Error(), failure));
    return rows;
  }

  #start(): Worker {
    const workerData = { path: this.#path, directory: dirname(this.#path) };
    return new Worker(THREAD, { workerData, execArgv: [] }).on('error', () => (this.#worker = null));
  }
}
