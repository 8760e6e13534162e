import type { StoreLostError } from '../errors.ts';
import type { Slots } from './slots.ts';
import type { Store } from './store.ts';

/** Rows of one transaction of the embedded store during an import. */
const BULK_ROWS = 10_000;

export interface OpenOptions {
  /** The store serves nobody, so that its transactions may be large: an import then waits for the disk 20 times less often. */
  readonly bulk?: boolean;
  /** Called once when this process can never use the store again, and is to end at once. Only an embedded store is ever lost. */
  readonly onLost?: (error: StoreLostError) => void;
}

export interface StoreSettings {
  readonly MONGODB_URI?: string;
  readonly MONGODB_MANAGE_INDEXES: boolean;
  readonly DATA_DIR: string;
}

interface Log {
  warn(message: string): void;
  info(message: string): void;
}

/** The store the settings name: MongoDB when there is a URI, else the embedded one. */
export async function openStore(
  config: StoreSettings,
  slots: Slots,
  log: Log,
  { bulk = false, onLost }: OpenOptions = {},
): Promise<Store> {
  // An adapter is loaded when the settings name it: the driver alone takes a third of a start.
  if (config.MONGODB_URI === undefined) {
    const { openLmdb } = await import('./lmdb.ts');
    return openLmdb({
      directory: config.DATA_DIR,
      slots,
      ...(bulk && { transactionRows: BULK_ROWS }),
      ...(onLost && { onLost }),
    });
  }
  const { connectMongo } = await import('./mongo.ts');
  return connectMongo({
    uri: config.MONGODB_URI,
    slots,
    manageIndexes: config.MONGODB_MANAGE_INDEXES,
    onWarning: (message) => log.warn(message),
    onNotice: (message) => log.info(message),
  });
}
