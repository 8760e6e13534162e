import { MongoServerError } from 'mongodb';
import { AppError, storeUnavailable } from '../errors.ts';
import { getOrMake } from '../get-or-make.ts';
import type { ScopeFields } from './scope-predicate.ts';
import { COMMAND_LIMIT_MS, GRACE_MS, MongoConnection } from './mongo/connection.ts';
import { driverWay } from './mongo/driver.ts';
import type { LayoutOptions } from './mongo/create-collection.ts';
import { isForgotten, mayRetry, MongoRefusal, translate } from './mongo/errors.ts';
import { DatabaseStream } from './mongo/feed/stream.ts';
import { gridFs } from './mongo/files.ts';
import { openCollection, type OpenCollection } from './mongo/collection.ts';
import { listCollections, makeCollection, whyOwn } from './mongo/collections.ts';
import { openLane, whyNoLane, type FindWay } from './mongo/lane/lane.ts';
import { openRecords } from './mongo/records.ts';
import type { Layouts, LookTiming } from './mongo/layouts.ts';
import type { Slots } from './slots.ts';
import type { Declaration, Store } from './store.ts';

export interface MongoOptions {
  /** The connection string. Its database is used, or `sluice` when it names none. */
  readonly uri: string;
  readonly slots: Slots;
  readonly items: Declaration;
  /** The beginning of the names of users, exports and their files. Default: none. */
  readonly prefix?: string | undefined;
  /** Whether to create a missing collection and missing indexes. False: they are only checked. */
  readonly manageIndexes: boolean;
  /** False: nothing is created on an existing collection of items that another program has made. True by default. */
  readonly adoptsItems?: boolean | undefined;
  /**
   * Whether the start makes sure of items and users. False: nothing is read or created before its first use, and the
   * store is ready when the collections that were opened are.
   */
  readonly own?: boolean | undefined;
  /** False: items are also read through the driver. */
  readonly lane?: boolean | undefined;
  readonly onWarning: (message: string) => void;
  /** Called once with the way items are read. */
  readonly onNotice?: ((message: string) => void) | undefined;
  readonly watch?: LookTiming | undefined;
}

/**
 * Opens the store in MongoDB. Also resolves when the server is unavailable or still builds indexes: every method then
 * rejects with `store-unavailable` until it is ready, without a restart. Rejects when the server is reachable and
 * cannot be used: with MongoRefusal and the reason, or with the driver's error about the URI or the credentials.
 */
export async function connectMongo(options: MongoOptions): Promise<Store> {
  const { uri, slots, manageIndexes: manage, adoptsItems: adopts = true, onWarning, onNotice } = options;
  const { own = true, prefix = '', watch } = options;
  const connection = new MongoConnection(uri);
  const driver = driverWay(connection, slots, onWarning);
  const whyDriver =
    options.lane === false ? 'the options of the store require it' : whyNoLane(connection.client.options);
  // It follows what the driver learns about members from now on.
  const errors = { isForgotten, mayRetry, translate };
  const limits = { limitMs: COMMAND_LIMIT_MS, graceMs: GRACE_MS };
  const lane =
    whyDriver === null ? openLane(connection, { slots, driver, errors, onWarning, ...limits }) : null;
  const way: FindWay = lane ?? driver;
  /** The collections that were opened, also those that were closed since. */
  let opened: readonly Layouts[] = [];
  const ofRecords: Layouts[] = [];
  /** The changes of each database, by its name, and those for parts of collections. */
  const streams = new Map<string, DatabaseStream>();

  const routeTo = (database = connection.database): { connection: MongoConnection; way: FindWay } => {
    if (database === connection.database) return { connection, way };
    const other = connection.in(database);
    const itsDriver = driverWay(other, slots, onWarning);
    return { connection: other, way: lane?.in(database, itsDriver) ?? itsDriver };
  };

  /** The stream of a database, or (`scope`) of a collection for the readers of scopes by these fields. */
  const streamOf = (
    to: MongoConnection,
    scope?: { readonly collection: string; readonly fields: ScopeFields },
  ): DatabaseStream => {
    const name = scope ? JSON.stringify([to.database, scope.collection, scope.fields]) : to.database;
    return getOrMake(streams, name, () => new DatabaseStream(to, scope?.fields));
  };

  const collectionOf = (declaration: Declaration, special: Partial<LayoutOptions> = {}, timing = watch) => {
    const { database, collection, indexes, create } = declaration;
    const route = routeTo(database);
    const refused = route.connection === connection ? whyOwn(collection, prefix) : undefined;
    if (refused !== undefined)
      throw new MongoRefusal(`The collection '${collection}' is not served: ${refused}.`);
    return openCollection(
      { ...route, slots, timing },
      { collection, indexes, create, manage, onWarning, onNotice, ...special },
      declaration,
      {
        stream: streamOf(route.connection),
        streamWith: (fields) => streamOf(route.connection, { collection, fields }),
      },
    );
  };

  const openResource = async (declaration: Declaration): Promise<OpenCollection> => {
    const one = collectionOf(declaration);
    try {
      await one.layouts.start();
    } catch (error) {
      if (!(error instanceof AppError)) {
        one.layouts.close(); // its timer would look at it for ever, also by a connection that was closed
        throw error;
      }
      onWarning(
        `The collection '${declaration.collection}' is not available yet, and requests for it get 503 until it is: ${String(error.cause)}`,
      );
    }
    opened = [...opened.filter(({ isClosed }) => !isClosed), one.layouts];
    return one;
  };

  const items = collectionOf(
    options.items,
    { manage: manage && own, warnsOfServer: true, adopts }, // a read creates nothing in a database that serves other collections
    own ? watch : { every: () => () => undefined },
  );

  const store: Store = {
    name: 'mongodb',
    keepsDeclarations: false, // the operator's settings have them
    items: items.rows,
    files: gridFs(connection, { prefix, onNotice }),
    async ping() {
      try {
        const faults = own ? await items.layouts.faults() : [];
        const open = opened.filter(({ isClosed }) => !isClosed);
        await Promise.all(open.map((layouts) => layouts.layout()));
        await connection.run({ ping: 1 });
        return faults;
      } catch (error) {
        throw error instanceof MongoServerError ? storeUnavailable(error) : error; // whatever it says, it is not ready
      }
    },
    open: async (declaration) => (await openResource(declaration)).rows,
    records(declaration) {
      const collection = prefix + declaration.collection;
      const ground = { connection, way, slots, timing: watch };
      const { rows, layouts } = openRecords(declaration, ground, { collection, manage, onWarning, onNotice });
      ofRecords.push(layouts);
      return Promise.resolve(rows);
    },
    async make(declaration, report) {
      const { connection: to } = routeTo(declaration.database);
      const open = () => openResource({ ...declaration, indexes: [] });
      return makeCollection(to, declaration.collection, open, report);
    },
    list: (database) => listCollections(routeTo(database).connection, prefix),
    declared: () => Promise.resolve([]),
    async close() {
      for (const layouts of [items.layouts, ...opened, ...ofRecords]) layouts.close();
      await Promise.all([...streams.values()].map((stream) => stream.close()));
      lane?.close();
      await connection.close();
    },
  };

  try {
    await (own ? items.layouts.start() : connection.connect());
  } catch (error) {
    if (!(error instanceof AppError)) {
      await store.close();
      throw error;
    }
    onWarning(`MongoDB is not available, and requests for items get 503 until it is: ${String(error.cause)}`);
  }
  const refusal = whyDriver ?? lane?.refusal ?? null;
  onNotice?.(
    refusal === null
      ? 'items are read over the data lane'
      : `items are read through the driver, which is slower: ${refusal}`,
  );
  return store;
}
