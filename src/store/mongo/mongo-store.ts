import { MongoServerError } from 'mongodb';
import { AppError, CommandRefusal, storeUnavailable } from '../../base/errors.ts';
import { getOrMake } from '../../base/get-or-make.ts';
import type { ScopeFields } from '../scope/predicate.ts';
import { COMMAND_LIMIT_MS, GRACE_MS, MongoConnection } from './connection.ts';
import { driverWay } from './read/driver.ts';
import { CODES, isForgotten, mayRetry, MongoRefusal, serverCodeOf, translate } from './errors.ts';
import { DatabaseStream } from './changes/stream.ts';
import { GridFs } from './files.ts';
import { openCollection, type OpenCollection } from './collection.ts';
import { createCollection, listCollections, whyOwn } from './collection/collections.ts';
import { openLane, whyNoLane, type FindWay, type Lane } from './lane/lane.ts';
import { mayWrite } from './write/permission.ts';
import { openRecords } from './write/records.ts';
import type { Layouts } from './collection/layouts.ts';
import type { LookTiming } from './collection/look-timing.ts';
import type { FileStore } from '../files.ts';
import type { RecordDeclaration, Records } from '../records.ts';
import type { Slots } from '../turns/slots.ts';
import type { Declaration, Listing, OwnedCollection, Store } from '../store.ts';

export interface MongoOptions {
  /** The connection string. Its database is used, or `sluice` when it names none. */
  readonly uri: string;
  readonly slots: Slots;
  /** The beginning of the names of users, exports and their files. Default: none. */
  readonly prefix?: string | undefined;
  /** Whether to create a missing collection and missing indexes. False: they are only checked. */
  readonly manageIndexes: boolean;
  /**
   * Where a declaration says how its collection is made. False: nothing is created on one that another program has made. True
   * by default.
   */
  readonly adopts?: boolean | undefined;
  /** False: rows are also read through the driver. */
  readonly lane?: boolean | undefined;
  readonly onWarning: (message: string) => void;
  /** Called once with the way rows are read, and with each thing that the store has made. */
  readonly onNotice?: ((message: string) => void) | undefined;
  readonly watch?: LookTiming | undefined;
}

/**
 * Opens the store in MongoDB. Also resolves when the server is unavailable: every method then rejects with
 * `store-unavailable` until it is ready, without a restart. Rejects when the server is reachable and cannot be used: with
 * MongoRefusal and the reason, or with the driver's error about the URI.
 */
export async function connectMongo(options: MongoOptions): Promise<Store> {
  const connection = new MongoConnection(options.uri);
  const store = new MongoStore(connection, options);
  try {
    await connection.connect();
  } catch (error) {
    if (!(error instanceof AppError)) {
      await store.close();
      throw refusedUser(error);
    }
    options.onWarning(
      `MongoDB is not available, and requests for items get 503 until it is: ${String(error.cause)}`,
    );
  }
  store.sayWay();
  return store;
}

function refusedUser(error: unknown): unknown {
  if (serverCodeOf(error) !== CODES.authenticationFailed) return error;
  return new MongoRefusal(`MongoDB refuses this user: ${String(error)}`, { cause: error });
}

/** What sends the finds of a database. */
interface Route {
  readonly connection: MongoConnection;
  readonly way: FindWay;
}

class MongoStore implements Store {
  readonly name = 'mongodb';
  readonly files: FileStore;
  readonly #options: MongoOptions;
  readonly #prefix: string;
  readonly #own: Route;
  readonly #lane: Lane | null;
  /** Why there is no lane. Null: there is one. */
  readonly #whyDriver: string | null;
  /** The collections that were opened, some of which were closed since. */
  #opened: readonly Layouts[] = [];
  readonly #ofRecords: Layouts[] = [];
  /** The changes of each database, by its name, and those for parts of collections. */
  readonly #streams = new Map<string, DatabaseStream>();

  constructor(connection: MongoConnection, options: MongoOptions) {
    const { slots, prefix = '', onWarning, onNotice } = options;
    this.#options = options;
    this.#prefix = prefix;
    this.files = new GridFs(connection, { prefix, onNotice });
    const driver = driverWay(connection, slots, onWarning);
    this.#whyDriver =
      options.lane === false ? 'the options of the store require it' : whyNoLane(connection.client.options);
    const errors = { isForgotten, mayRetry, translate };
    const limits = { limitMs: COMMAND_LIMIT_MS, graceMs: GRACE_MS };
    // It follows what the driver learns about members from now on.
    const lane = { slots, driver, errors, onWarning, ...limits };
    this.#lane = this.#whyDriver === null ? openLane(connection, lane) : null;
    this.#own = { connection, way: this.#lane ?? driver };
  }

  /** Says how rows are read. */
  sayWay(): void {
    const refusal = this.#whyDriver ?? this.#lane?.refusal ?? null;
    this.#options.onNotice?.(
      refusal === null
        ? 'items are read over the data lane'
        : `items are read through the driver, which is slower: ${refusal}`,
    );
  }

  async open(declaration: Declaration, may: 'read' | 'make' = 'read'): Promise<OwnedCollection> {
    if (may === 'read') return (await this.#open(declaration)).rows;
    const { collection, database, onMade } = declaration;
    const { connection } = this.#routeTo(database);
    await connection.connect();
    if (await createCollection(connection, collection))
      onMade?.(`created the collection ${connection.database}.${collection}`);
    const { rows, layouts } = await this.#open({ ...declaration, indexes: [] }).catch((error: unknown) => {
      throw error instanceof MongoRefusal ? new CommandRefusal(error.message, { cause: error }) : error;
    });
    await layouts.layout();
    return rows;
  }

  records(declaration: RecordDeclaration): Promise<Records> {
    const { slots, watch: timing, manageIndexes: manage, onWarning, onNotice } = this.#options;
    const collection = this.#prefix + declaration.collection;
    const asked = { collection, manage, onWarning, onNotice };
    const { rows, layouts } = openRecords(declaration, { ...this.#own, slots, timing }, asked);
    this.#ofRecords.push(layouts);
    return Promise.resolve(rows);
  }

  mayWrite({ collection }: Pick<RecordDeclaration, 'collection'>): Promise<boolean> {
    return mayWrite(this.#own.connection, this.#prefix + collection);
  }

  async list(database?: string): Promise<Listing> {
    return { collections: await listCollections(this.#routeTo(database).connection, this.#prefix) };
  }

  async ping(): Promise<readonly string[]> {
    try {
      const open = this.#opened.filter(({ isClosed }) => !isClosed);
      const faults = await Promise.all(open.map((layouts) => layouts.faults()));
      await this.#own.connection.run({ ping: 1 });
      return faults.flat();
    } catch (error) {
      throw error instanceof MongoServerError ? storeUnavailable(error) : error; // whatever it says, it is not ready
    }
  }

  async close(): Promise<void> {
    for (const layouts of [...this.#opened, ...this.#ofRecords]) layouts.close();
    await Promise.all([...this.#streams.values()].map((stream) => stream.close()));
    this.#lane?.close();
    await this.#own.connection.close();
  }

  /** Opens a collection by a look at it, which may fail because the server is away. */
  async #open(declaration: Declaration): Promise<OpenCollection> {
    const one = this.#collection(declaration);
    try {
      await one.layouts.start();
    } catch (error) {
      if (!(error instanceof AppError)) {
        one.layouts.close(); // its timer would look at it for ever, also by a connection that was closed
        throw error;
      }
      this.#options.onWarning(
        `The collection '${declaration.collection}' is not available yet, and requests for it get 503 until it is: ${String(error.cause)}`,
      );
    }
    this.#opened = [...this.#opened.filter(({ isClosed }) => !isClosed), one.layouts];
    return one;
  }

  #collection(declaration: Declaration): OpenCollection {
    const { slots, watch: timing, manageIndexes: manage, adopts, onWarning, onNotice } = this.#options;
    const { database, collection, indexes, create } = declaration;
    const route = this.#routeTo(database);
    const refused = route === this.#own ? whyOwn(collection, this.#prefix) : undefined;
    if (refused !== undefined)
      throw new MongoRefusal(`The collection '${collection}' is not served: ${refused}.`);
    return openCollection(
      { ...route, slots, timing },
      {
        collection,
        indexes,
        create,
        manage,
        onWarning,
        onNotice,
        ...(adopts !== undefined && { adopts }),
        warnsOfServer: create !== undefined, // who reads collections of others has chosen their server
      },
      declaration,
      {
        stream: this.#streamOf(route.connection),
        streamWith: (fields) => this.#streamOf(route.connection, { collection, fields }),
      },
    );
  }

  #routeTo(database?: string): Route {
    const { connection } = this.#own;
    if (database === undefined || database === connection.database) return this.#own;
    const other = connection.in(database);
    const driver = driverWay(other, this.#options.slots, this.#options.onWarning);
    return { connection: other, way: this.#lane?.in(database, driver) ?? driver };
  }

  /** The stream of a database, or (`scope`) of a collection for the readers of scopes by these fields. */
  #streamOf(
    to: MongoConnection,
    scope?: { readonly collection: string; readonly fields: ScopeFields },
  ): DatabaseStream {
    const name = scope ? JSON.stringify([to.database, scope.collection, scope.fields]) : to.database;
    return getOrMake(this.#streams, name, () => new DatabaseStream(to, scope?.fields));
  }
}
