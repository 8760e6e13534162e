import type { Slots } from '../store/turns/slots.ts';
import type { Store } from '../store/store.ts';
import type { Log } from '../base/log.ts';

const BULK_ROWS = 10_000;

interface OpenOptions {
  /** The store serves no clients. So its transactions may be large, and an import waits 20 times less for the disk. */
  readonly bulk?: boolean;
  /** Whether indexes that declarations of this server want are also made in collections that another program has made. */
  readonly adopts?: boolean;
}

export interface StoreSettings {
  readonly MONGODB_URI?: string;
  readonly MONGODB_MANAGE_INDEXES: 'auto' | 'true' | 'false';
  readonly MONGODB_PREFIX?: string;
  readonly DATA_DIR: string;
  /** How long the embedded store keeps changes, in milliseconds. 7 days by default. */
  readonly CHANGES_TTL?: number;
}

/** Opens the store that the settings name: MongoDB when MONGODB_URI is set, else the embedded store. */
export async function openStore(
  config: StoreSettings,
  slots: Slots,
  log: Log,
  { bulk = false, adopts = bulk }: OpenOptions = {},
): Promise<Store> {
  // Only the adapter in use is loaded: the MongoDB driver alone takes a third of the start-up time.
  if (config.MONGODB_URI === undefined) {
    const { openSqlite } = await import('../store/sqlite/sqlite-store.ts');
    return openSqlite({
      directory: config.DATA_DIR,
      slots,
      onWarning: (message) => log.warn({}, message),
      ...(config.CHANGES_TTL !== undefined && { changesTtlMs: config.CHANGES_TTL }),
      ...(bulk && { transactionRows: BULK_ROWS }),
    });
  }
  const { connectMongo } = await import('../store/mongo/mongo-store.ts');
  return connectMongo({
    uri: config.MONGODB_URI,
    slots,
    manageIndexes: config.MONGODB_MANAGE_INDEXES !== 'false',
    adopts: config.MONGODB_MANAGE_INDEXES !== 'auto' || adopts,
    prefix: config.MONGODB_PREFIX,
    onWarning: (message) => log.warn({}, message),
    onNotice: (message) => log.info({}, message),
  });
}
