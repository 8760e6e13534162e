import { AppError } from '../errors.ts';
import type { Batch } from '../store/batch.ts';
import type { Collection, ItemStore, RecordStore, RowReader, RowStore, Store } from '../store/store.ts';
import type { Metrics } from './metrics.ts';

type Meter = Pick<Metrics, 'storeOperation' | 'batchRead'>;

/** Wraps a store and reports the duration of its operations to the meter. */
export function timedStore(store: Store, meter: Meter): Store {
  return {
    name: store.name,
    keepsDeclarations: store.keepsDeclarations,
    loads: store.loads,
    items: timedItems(store.items, meter),
    users: timedRecords(store.users, meter),
    exports: timedRecords(store.exports, meter),
    files: store.files,
    open: async (declaration) => timedCollection(await store.open(declaration), meter),
    make: (...call) => store.make(...call),
    list: (database) => store.list(database),
    declared: () => store.declared(),
    ping: () => store.ping(),
    close: () => store.close(),
  };
}

function timedItems(items: ItemStore, meter: Meter): ItemStore {
  const load = items.load?.bind(items);
  return { ...timedRows(items, meter), clear: (...call) => items.clear(...call), ...(load && { load }) };
}

function timedRows(rows: RowStore, meter: Meter): RowStore {
  const timed = timer(meter);
  const remove = rows.remove?.bind(rows);
  return {
    ...timedReads(rows, meter),
    count: timed('count', (...call: Parameters<RowStore['count']>) => rows.count(...call)),
    split: timed('split', (...call: Parameters<RowStore['split']>) => rows.split(...call)),
    identity: (...call) => rows.identity(...call),
    pointInTime: (...call) => rows.pointInTime(...call),
    insert: timed('insert', (...call: Parameters<RowStore['insert']>) => rows.insert(...call)),
    ...(remove && { remove: timed('remove', remove) }),
    ...(rows.changes && { changes: rows.changes }),
  };
}

function timedCollection(rows: Collection, meter: Meter): Collection {
  const timed = timer(meter);
  return {
    ...timedRows(rows, meter),
    indexes: (...call) => rows.indexes(...call),
    holds: timed('holds', (...call: Parameters<Collection['holds']>) => rows.holds(...call)),
    nextValue: timed('values', (...call: Parameters<Collection['nextValue']>) => rows.nextValue(...call)),
  };
}

function timedRecords(records: RecordStore, meter: Meter): RecordStore {
  const timed = timer(meter);
  return {
    ...timedReads(records, meter),
    change: timed('change', (...call: Parameters<RecordStore['change']>) => records.change(...call)),
  };
}

function timedReads(rows: RowReader, meter: Meter): RowReader {
  const timed = timer(meter);
  const count = (batch: Batch) => {
    meter.batchRead(batch.rows);
    return batch;
  };
  return {
    read: timed('read', (...call: Parameters<RowReader['read']>) => rows.read(...call).then(count)),
    confirm: (...call) => rows.confirm(...call),
    get: timed('get', (...call: Parameters<RowReader['get']>) => rows.get(...call)),
  };
}

/** Wraps functions so that the meter learns how long their promises take, and whether the store failed. */
function timer(meter: Meter) {
  return <A extends unknown[], T>(operation: string, work: (...call: A) => Promise<T>) => {
    const gauge = meter.storeOperation(operation);
    return async (...call: A): Promise<T> => {
      const began = performance.now();
      try {
        const result = await work(...call);
        gauge(performance.now() - began, false);
        return result;
      } catch (error) {
        // An operation that its caller aborted, or that asked for something missing, is no failure of the
        // store.
        if (error instanceof AppError && error.status >= 500) gauge(performance.now() - began, true);
        throw error;
      }
    };
  };
}
