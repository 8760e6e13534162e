import { AppError } from '../errors.ts';
import { KEY } from './bookmark.ts';
import { MongoConnection } from './mongo/connection.ts';
import { DriverWay } from './mongo/driver.ts';
import { GridFs } from './mongo/files.ts';
import { Finder } from './mongo/find.ts';
import { MongoItems } from './mongo/items.ts';
import { openLane } from './mongo/lane/lane.ts';
import type { Lane } from './mongo/lane/lane.ts';
import { whyNoLane } from './mongo/lane/refusal.ts';
import type { FindWay } from './mongo/reply.ts';
import { joinPaths } from './mongo/plan.ts';
import { Setup } from './mongo/setup.ts';
import { EXPORTS, setUpRecords, USERS } from './mongo/record-collection.ts';
import type { RecordKind } from './mongo/record-collection.ts';
import { MongoRecords } from './mongo/records.ts';
import { IndexWatch, type IndexWatchOptions } from './mongo/index-watch.ts';
import type { Slots } from './slots.ts';
import type { Collection, Declaration, Found, Store } from './store.ts';

export interface MongoOptions {
  /** The connection string. Its database is used, or `sluice` when it names none. */
  readonly uri: string;
  readonly slots: Slots;
  /** Whether to create a missing collection and missing indexes. False: they are only checked. */
  readonly manageIndexes: boolean;
  /** False: items are also read through the driver. */
  readonly lane?: boolean | undefined;
  readonly onWarning: (message: string) => void;
  /** Called once with the way items are read. */
  readonly onNotice?: ((message: string) => void) | undefined;
  /** The clock and timers of the watch over collection and indexes. */
  readonly watch?: IndexWatchOptions | undefined;
}

const ITEMS = 'items';
const ITEM_INDEXES = [
  ['price', KEY],
  ['category', KEY],
  ['category', 'price', KEY],
].map(joinPaths);

/**
 * Opens the store in MongoDB. Also resolves when the server is unavailable or still builds indexes: every method then
 * rejects with `store-unavailable` until it is ready, without a restart. Rejects when the server is reachable and
 * cannot be used: with MongoRefusal and the reason, or with the driver's error about the URI or the credentials.
 */
export async function connectMongo(options: MongoOptions): Promise<Store> {
  const { uri, manageIndexes: manage, onWarning, onNotice } = options;
  const connection = new MongoConnection(uri);
  const common = { manage, onWarning, onNotice };
  const setup = new Setup(connection, {
    ...common,
    collection: ITEMS,
    indexes: ITEM_INDEXES,
    tellsServer: true,
  });
  const recordsOf = (kind: RecordKind) =>
    new Setup(connection, { ...common, collection: kind.collection, indexes: [] }, setUpRecords(kind));
  const records = { users: recordsOf(USERS), exports: recordsOf(EXPORTS) };
  const ways = waysOf(connection, options); // before connecting: the lane follows what the driver learns about members
  try {
    await setup.start();
    // Items do not need records. Each access to a record checks again, and warns there why the collection is unfit.
    await Promise.all(Object.values(records).map((record) => record.layout().catch(() => undefined)));
  } catch (error) {
    if (!(error instanceof AppError)) {
      await connection.close();
      throw error;
    }
    onWarning(`MongoDB is not available, and requests for items get 503 until it is: ${String(error.cause)}`);
  }
  onNotice?.(describe(ways));
  return new MongoStore(connection, setup, records, options, ways);
}

/** How rows are read: users through the driver, items over the lane or, where there is none, the reason for that. */
interface Ways {
  readonly driver: DriverWay;
  readonly lane: Lane | string;
}

function waysOf(connection: MongoConnection, options: MongoOptions): Ways {
  const { slots, lane = true, onWarning } = options;
  const driver = new DriverWay(connection, slots, onWarning);
  const refusal = lane ? whyNoLane(connection.client.options, slots) : 'the options of the store require it';
  return { driver, lane: refusal ?? openLane(connection, slots, driver, onWarning) };
}

function describe({ lane }: Ways): string {
  const refusal = typeof lane === 'string' ? lane : lane.refusal;
  return refusal === null
    ? 'items are read over the data lane'
    : `items are read through the driver, which is slower: ${refusal}`;
}

class MongoStore implements Store {
  readonly name = 'mongodb';
  readonly items: MongoItems;
  readonly users: MongoRecords;
  readonly exports: MongoRecords;
  readonly files: GridFs;
  readonly #connection: MongoConnection;
  readonly #watch: IndexWatch;
  /** The way items are read. Closing it also closes the way of the records. */
  readonly #way: FindWay;

  constructor(
    connection: MongoConnection,
    setup: Setup,
    records: Readonly<Record<'users' | 'exports', Setup>>,
    { slots, watch = {} }: MongoOptions,
    ways: Ways,
  ) {
    this.#connection = connection;
    this.#watch = new IndexWatch(connection, setup, watch);
    this.files = new GridFs(connection);
    this.#way = typeof ways.lane === 'string' ? ways.driver : ways.lane;
    this.items = new MongoItems(connection, setup, this.#watch, new Finder(this.#way, setup), slots);
    const recordsOf = (kind: Setup) =>
      // records are read as items are
      new MongoRecords(
        connection,
        kind,
        new MongoItems(connection, kind, recordWatch(connection, kind), new Finder(ways.driver, kind), slots),
      );
    this.users = recordsOf(records.users);
    this.exports = recordsOf(records.exports);
  }

  async ping(): Promise<readonly string[]> {
    const faults = await this.#watch.faults();
    await this.#connection.run({ ping: 1 });
    return faults;
  }

  open({ collection }: Declaration): Promise<Collection> {
    return Promise.reject(new TypeError(`${collection} cannot be opened yet`));
  }

  list(): Promise<readonly Found[]> {
    return Promise.resolve([]);
  }

  /** MongoDB keeps no declarations: the operator's settings have them. */
  declared(): Promise<readonly Declaration[]> {
    return Promise.resolve([]);
  }

  async close(): Promise<void> {
    this.#watch.close();
    await this.#way.close();
    await this.#connection.close();
  }
}

/** Records are read in order of id only. A read meets every fault itself, so there is nothing to watch. */
function recordWatch(connection: MongoConnection, setup: Setup): IndexWatch {
  return new IndexWatch(connection, setup, { every: () => () => undefined });
}
