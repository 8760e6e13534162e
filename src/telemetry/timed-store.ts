import { AppError } from '../base/errors.ts';
import type { ReadBatch } from '../store/batch.ts';
import type { RecordDeclaration } from '../store/records.ts';
import type { Collection, RowReader, Store } from '../store/store.ts';
import type { Metrics } from './metrics.ts';
import { tracedFeed } from './traced-feed.ts';
import { tracedWork, type TracedPlace } from './traced-work.ts';

type Meter = Pick<Metrics, 'storeOperation' | 'batchRead'>;
type TakeSnapshot = NonNullable<Collection['snapshot']>;
type Operation = (...call: unknown[]) => Promise<unknown>;

/** The methods of collections that are timed, and what the metrics call them. */
const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ...['read', 'count', 'split', 'insert', 'remove', 'change', 'snapshot'].map((one) => [one, one] as const),
  ['nextValue', 'values'],
]);

/**
 * Wraps a store and reports the duration of its operations to the meter. `isTraced`: those that are done for a sampled
 * request or export become parts of its span.
 */
export function timedStore(store: Store, meter: Meter, isTraced = false): Store {
  const timedOf = <T extends RowReader>(rows: T, collection: string): T =>
    timed(rows, meter, isTraced ? { 'db.system.name': store.name, 'db.collection.name': collection } : null);
  return {
    name: store.name,
    files: store.files,
    open: async (...call) => timedOf(await store.open(...call), call[0].collection),
    records: async (declaration) => timedOf(await store.records(declaration), declaration.collection),
    list: (database) => store.list(database),
    ping: () => store.ping(),
    close: () => store.close(),
    ...(store.mayWrite && {
      mayWrite: (declaration: RecordDeclaration) => store.mayWrite?.(declaration) ?? Promise.resolve(true),
    }),
    ...(store.size && { size: () => store.size?.() ?? 0 }),
  };
}

function timed<T extends RowReader & Partial<Pick<Collection, 'describe' | 'changes'>>>(
  rows: T,
  meter: Meter,
  place: TracedPlace | null,
): T {
  const own: Record<string, Operation> = {};
  for (const [method, name] of OPERATIONS) {
    const work: unknown = Reflect.get(rows, method);
    if (typeof work !== 'function') continue;
    const traced = place ? tracedWork(work as Operation, spansOf(name), place) : (work as Operation);
    own[method] = timer(traced, meter.storeOperation(name));
  }
  const read: RowReader['read'] = async (...call) => {
    const batch = await (own.read as RowReader['read'])(...call);
    meter.batchRead(batch.rows);
    return batch;
  };
  const snapshot = own.snapshot && timedSnapshot(own.snapshot as TakeSnapshot, meter, place);
  return { ...rows, ...own, read, ...(snapshot && { snapshot }), ...(place && tracedOnly(rows, place)) };
}

/** What becomes spans, and is not timed: looks cost little, and reads of changes wait. */
function tracedOnly(
  { describe, changes }: Partial<Pick<Collection, 'describe' | 'changes'>>,
  place: TracedPlace,
): Partial<Pick<Collection, 'describe' | 'changes'>> {
  return {
    ...(describe && { describe: tracedWork(describe, DESCRIBE, place) }),
    ...(changes && { changes: tracedFeed(changes, place) }),
  };
}

const DESCRIBE = {
  name: 'describe',
  signalOf: ([signal]: Parameters<Collection['describe']>) => signal,
};

function spansOf(name: string) {
  const signalOf = (call: readonly unknown[]) => call.at(-1);
  return {
    name,
    signalOf,
    ...(name === 'read' && {
      factsOf: (batch: unknown) => ({ 'db.response.returned_rows': (batch as ReadBatch).rows }),
    }),
  };
}

function timedSnapshot(take: TakeSnapshot, meter: Meter, place: TracedPlace | null): TakeSnapshot {
  return async (signal) => {
    const snapshot = await take(signal);
    const rows: RowReader = { read: (...call) => snapshot.rows.read(...call) };
    return { ...snapshot, rows: timed(rows, meter, place), release: () => snapshot.release() };
  };
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
