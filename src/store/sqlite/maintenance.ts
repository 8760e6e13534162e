import { once } from 'node:events';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { asset } from '../../asset.ts';
import { retryBusy } from './errors.ts';

const THREAD = asset('store/sqlite/worker.mjs');

/** Why a statement failed. Null: it did not. */
type Failure = { readonly message: string; readonly errcode?: number } | null;

/** Runs long statements on a file, one at a time, in a thread with a connection of its own, begun by the first. */
export function maintenanceOf(path: string) {
  let started: Worker | null = null;

  const start = (): Worker => {
    const workerData = { path, directory: dirname(path) };
    return new Worker(THREAD, { workerData, execArgv: [] }).on('error', () => (started = null));
  };
  const ask = async (sql: string): Promise<void> => {
    const worker = (started ??= start());
    worker.ref();
    worker.postMessage(sql);
    const [failure] = (await once(worker, 'message')) as [Failure];
    worker.unref(); // does not keep the process running
    if (failure) throw Object.assign(new Error(failure.message), { errcode: failure.errcode });
  };
  return {
    /** Runs statements. A failure undoes the transaction that they began. To be called when the call before has ended. */
    run: (sql: string): Promise<void> => retryBusy(() => ask(sql)),
    close: async (): Promise<void> => {
      if (!started) return;
      started.ref();
      started.postMessage(null);
      await once(started, 'exit');
    },
  };
}
