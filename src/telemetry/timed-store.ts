import { AppError } from '../base/errors.ts';
import type { RecordDeclaration } from '../store/records.ts';
import type { RowReader, Store } from '../store/store.ts';
import type { Metrics } from './metrics.ts';

type Meter = Pick<Metrics, 'storeOperation' | 'batchRead'>;
type Operation = (...call: unknown[]) => Promise<unknown>;

/** The methods of collections that are timed, and what the metrics call them. */
const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ...['read', 'count', 'split', 'insert', 'remove', 'change'].map((one) => [one, one] as const),
  ['nextValue', 'values'],
]);

/** Wraps a store and reports the duration of its operations to the meter. */
export function timedStore(store: Store, meter: Meter): Store {
  return {
    name: store.name,
    files: store.files,
    open: async (...call) => timed(await store.open(...call), meter),
    records: async (declaration) => timed(await store.records(declaration), meter),
    list: (database) => store.list(database),
    ping: () => store.ping(),
    close: () => store.close(),
    ...(store.mayWrite && {
      mayWrite: (declaration: RecordDeclaration) => store.mayWrite?.(declaration) ?? Promise.resolve(true),
    }),
    ...(store.size && { size: () => store.size?.() ?? 0 }),
  };
}

function timed<T extends RowReader>(rows: T, meter: Meter): T {
  const own: Record<string, Operation> = {};
  for (const [method, name] of OPERATIONS) {
    const work: unknown = Reflect.get(rows, method);
    if (typeof work === 'function') own[method] = timer(work as Operation, meter.storeOperation(name));
  }
  const read: RowReader['read'] = async (...call) => {
    const batch = await (own.read as RowReader['read'])(...call);
    meter.batchRead(batch.rows);
    return batch;
  };
  return { ...rows, ...own, read };
}

/** Calls `gauge` with the duration of each call, and whether the store failed. */
function timer(work: Operation, gauge: (ms: number, hasFailed: boolean) => void): Operation {
  return async (...call) => {
    const began = performance.now();
    try {
      const result = await work(...call);
      gauge(performance.now() - began, false);
      return result;
    } catch (error) {
      // An operation that its caller aborted, or that asked for something missing, is no failure of the store.
      if (error instanceof AppError && error.status >= 500) gauge(performance.now() - began, true);
      throw error;
    }
  };
}
