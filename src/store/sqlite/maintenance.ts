import { once } from 'node:events';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { asset } from '../../asset.ts';
import { withCode, type SqlRow, type SqlValue } from './connection.ts';
import { retryBusy } from './errors.ts';

const THREAD = asset('store/sqlite/worker.mjs');

/** The rows of a query, or why a statement failed. */
interface Answer {
  readonly rows?: readonly SqlRow[];
  readonly failure?: { readonly message: string; readonly errcode?: number };
}

/** Runs long statements on a file, one at a time, in a thread with a connection of its own, begun by the first. */
export function maintenanceOf(path: string) {
  let started: Worker | null = null;

  const start = (): Worker => {
    const workerData = { path, directory: dirname(path) };
    return new Worker(THREAD, { workerData, execArgv: [] }).on('error', () => (started = null));
  };
  const ask = async (sql: string, values?: readonly SqlValue[]): Promise<readonly SqlRow[]> => {
    const worker = (started ??= start());
    worker.ref();
    worker.postMessage({ sql, values });
    const [{ rows = [], failure }] = (await once(worker, 'message')) as [Answer];
    worker.unref(); // does not keep the process running
    if (failure)
      throw withCode(
        Object.assign(
          new Error(failure.message),
          failure.errcode !== undefined && { errcode: failure.errcode },
        ),
      );
    return rows;
  };
  return {
    /** Runs statements. A failure undoes the transaction that they began. To be called when the call before has ended. */
    run: async (sql: string): Promise<void> => {
      await retryBusy(() => ask(sql));
    },
    /** The rows of one query. Its text must not come from a request. */
    query: (sql: string, ...values: SqlValue[]) => retryBusy(() => ask(sql, values)),
    close: async (): Promise<void> => {
      if (!started) return;
      started.ref();
      started.postMessage(null);
      await once(started, 'exit');
    },
  };
}
