import { AppError } from '../errors.ts';
import type { ScopeFields } from './scope-predicate.ts';
import { MongoConnection } from './mongo/connection.ts';
import { DriverWay } from './mongo/driver.ts';
import type { LayoutOptions } from './mongo/create-collection.ts';
import { MongoRefusal } from './mongo/errors.ts';
import { DatabaseStream } from './mongo/feed/stream.ts';
import type { FileStore } from './files.ts';
import { gridFs } from './mongo/files.ts';
import {
  listCollections,
  makeCollection,
  openCollection,
  whyOwn,
  type OpenCollection,
} from './mongo/open-collection.ts';
import { openLane, type Lane } from './mongo/lane/lane.ts';
import { whyNoLane } from './mongo/lane/refusal.ts';
import type { FindWay } from './mongo/reply.ts';
import { openRecords } from './mongo/records.ts';
import type { LookTiming } from './mongo/layouts.ts';
import type { RecordDeclaration, Records } from './records.ts';
import type { Slots } from './slots.ts';
import type { Declaration, Found, OwnedCollection, Store } from './store.ts';

export interface MongoOptions {
  /** The connection string. Its database is used, or `sluice` when it names none. */
  readonly uri: string;
  readonly slots: Slots;
  /** The collection that every store has. */
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
  /** The clock and timers of the watch over collection and indexes. */
  readonly watch?: LookTiming | undefined;
}

/**
 * Opens the store in MongoDB. Also resolves when the server is unavailable or still builds indexes: every method then
 * rejects with `store-unavailable` until it is ready, without a restart. Rejects when the server is reachable and
 * cannot be used: with MongoRefusal and the reason, or with the driver's error about the URI or the credentials.
 */
export async function connectMongo(options: MongoOptions): Promise<Store> {
  const { uri, onWarning, onNotice } = options;
  const connection = new MongoConnection(uri);
  const store = new MongoStore(connection, options);
  try {
    await store.start();
  } catch (error) {
    if (!(error instanceof AppError)) {
      await store.close();
      throw error;
    }
    onWarning(`MongoDB is not available, and requests for items get 503 until it is: ${String(error.cause)}`);
  }
  onNotice?.(store.describeWay());
  return store;
}

class MongoStore implements Store {
  readonly name = 'mongodb';
  readonly keepsDeclarations = false;
  readonly items: OwnedCollection;
  readonly files: FileStore;
  readonly #connection: MongoConnection;
  readonly #items: OpenCollection;
  /** How rows are read. Null: through the driver, for this reason. */
  readonly #lane: Lane | null;
  readonly #whyNoLane: string | null;
  readonly #way: FindWay;
  readonly #options: MongoOptions;
  #open: readonly OpenCollection[] = [];
  readonly #records: OpenCollection<Records>[] = [];
  /** The changes of each database, by its name, and those for parts of collections. */
  readonly #streams = new Map<string, DatabaseStream>();

  /** Does not connect: the lane follows what the driver learns about members from then on. */
  constructor(connection: MongoConnection, options: MongoOptions) {
    const { own = true, prefix = '', manageIndexes, adoptsItems = true, onNotice, watch } = options;
    const { slots, lane = true, onWarning } = options;
    this.#connection = connection;
    this.#options = options;
    this.files = gridFs(connection, { prefix, onNotice });
    const driver = new DriverWay(connection, slots, onWarning);
    const refusal = lane ? whyNoLane(connection.client.options) : 'the options of the store require it';
    this.#whyNoLane = refusal;
    this.#lane = refusal === null ? openLane(connection, slots, driver, onWarning) : null;
    this.#way = this.#lane ?? driver;
    const isManaged = manageIndexes && own; // a read creates nothing in a database that serves other collections
    const timing = own ? watch : { every: () => () => undefined };
    const ofItems = { manage: isManaged, warnsOfServer: true, adopts: adoptsItems };
    this.#items = this.#collectionOf(options.items, ofItems, timing);
    this.items = this.#items.rows;
  }

  async start(): Promise<void> {
    const { own = true } = this.#options;
    await (own ? this.#items.layouts.start() : this.#connection.connect());
  }

  /** The way items are read, as a sentence without its full stop. */
  describeWay(): string {
    const refusal = this.#whyNoLane ?? this.#lane?.refusal ?? null;
    return refusal === null
      ? 'items are read over the data lane'
      : `items are read through the driver, which is slower: ${refusal}`;
  }

  async ping(): Promise<readonly string[]> {
    const { own = true } = this.#options;
    const faults = own ? await this.#items.layouts.faults() : [];
    await Promise.all(this.#stillOpen().map(({ layouts }) => layouts.layout()));
    await this.#connection.run({ ping: 1 });
    return faults;
  }

  async open(declaration: Declaration): Promise<OwnedCollection> {
    return (await this.#openCollection(declaration)).rows;
  }

  records(declaration: RecordDeclaration): Promise<Records> {
    const { prefix = '', slots, watch: timing } = this.#options;
    const opened = openRecords(
      declaration,
      { connection: this.#connection, way: this.#way, slots, timing },
      { ...this.#ofLayout, collection: prefix + declaration.collection },
    );
    this.#records.push(opened);
    return Promise.resolve(opened.rows);
  }

  async #openCollection(declaration: Declaration): Promise<OpenCollection> {
    const opened = this.#collectionOf(declaration);
    try {
      await opened.layouts.start();
    } catch (error) {
      if (!(error instanceof AppError)) {
        opened.layouts.close(); // its timer would look at it for ever, also by a connection that was closed
        throw error;
      }
      this.#options.onWarning(
        `The collection '${declaration.collection}' is not available yet, and requests for it get 503 until it is: ${String(error.cause)}`,
      );
    }
    this.#open = [...this.#stillOpen(), opened];
    return opened;
  }

  /** The collections that were opened, without those that were closed since. */
  #stillOpen(): readonly OpenCollection[] {
    return this.#open.filter(({ layouts }) => !layouts.isClosed);
  }

  #collectionOf(
    declaration: Declaration,
    own: Partial<LayoutOptions> = {},
    timing = this.#options.watch,
  ): OpenCollection {
    const { slots, prefix } = this.#options;
    const { database = this.#connection.database, collection, indexes, create } = declaration;
    const refused = database === this.#connection.database ? whyOwn(collection, prefix) : undefined;
    if (refused !== undefined)
      throw new MongoRefusal(`The collection '${collection}' is not served: ${refused}.`);
    const route = this.#routeTo(database);
    return openCollection(
      { ...route, slots, timing },
      { ...this.#ofLayout, collection, indexes, create, ...own },
      declaration,
      {
        stream: this.#streamOf(route.connection),
        streamWith: (fields) => this.#streamOf(route.connection, { collection, fields }),
      },
    );
  }

  /** What every look does with what is missing and what it finds. */
  get #ofLayout(): Pick<LayoutOptions, 'manage' | 'onWarning' | 'onNotice'> {
    const { manageIndexes: manage, onWarning, onNotice } = this.#options;
    return { manage, onWarning, onNotice };
  }

  async make(declaration: Declaration, report: (line: string) => void): Promise<OwnedCollection> {
    const { database = this.#connection.database, collection } = declaration;
    const { connection } = this.#routeTo(database);
    const open = () => this.#openCollection({ ...declaration, indexes: [] });
    return makeCollection(connection, collection, open, report);
  }

  list(database = this.#connection.database): Promise<readonly Found[]> {
    return listCollections(this.#routeTo(database).connection, this.#options.prefix);
  }

  /** MongoDB keeps no declarations: the operator's settings have them. */
  declared(): Promise<readonly Declaration[]> {
    return Promise.resolve([]);
  }

  #routeTo(database: string): { readonly connection: MongoConnection; readonly way: FindWay } {
    if (database === this.#connection.database) return { connection: this.#connection, way: this.#way };
    const connection = this.#connection.in(database);
    const driver = new DriverWay(connection, this.#options.slots, this.#options.onWarning);
    return { connection, way: this.#lane?.in(database, driver) ?? driver };
  }

  /** The stream of a database, or (`scope`) of a collection for the readers of scopes by these fields. */
  #streamOf(
    connection: MongoConnection,
    scope?: { readonly collection: string; readonly fields: ScopeFields },
  ): DatabaseStream {
    const { database } = connection;
    const name = scope ? JSON.stringify([database, scope.collection, scope.fields]) : database;
    const stream = this.#streams.get(name) ?? new DatabaseStream(connection, scope?.fields);
    this.#streams.set(name, stream);
    return stream;
  }

  async close(): Promise<void> {
    for (const { layouts } of [this.#items, ...this.#open, ...this.#records]) layouts.close();
    await Promise.all([...this.#streams.values()].map((stream) => stream.close()));
    this.#lane?.close();
    await this.#connection.close();
  }
}
