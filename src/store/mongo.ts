import { AppError } from '../errors.ts';
import { MongoConnection } from './mongo/connection.ts';
import { Finder } from './mongo/find.ts';
import { MongoItems } from './mongo/items.ts';
import { Setup } from './mongo/setup.ts';
import { setUpUsers } from './mongo/user-collection.ts';
import { MongoUsers } from './mongo/users.ts';
import type { Slots } from './slots.ts';
import type { Store } from './store.ts';

export interface MongoOptions {
  /** The database is the URI's, else `sluice`. */
  readonly uri: string;
  readonly slots: Slots;
  /** Whether collection and indexes are made when they are missing; else they are only checked. */
  readonly manageIndexes: boolean;
  readonly onWarning: (message: string) => void;
}

const ITEMS = 'items';
const USERS = 'users';

/**
 * The store in MongoDB. Resolves also when the server is away or still builds indexes: everything then rejects with
 * `store-unavailable` until it is back, without a restart. Rejects when it is there and cannot be used: MongoRefusal
 * with what is wrong, or the driver's error about the URI or the credentials.
 */
export async function connectMongo({ uri, slots, manageIndexes, onWarning }: MongoOptions): Promise<Store> {
  const connection = new MongoConnection(uri);
  const setup = new Setup(connection, { collection: ITEMS, manage: manageIndexes, onWarning });
  const users = new Setup(connection, { collection: USERS, manage: manageIndexes, onWarning }, setUpUsers);
  try {
    await setup.start();
    // Items need no users: whoever asks for one looks again, and why the collection is unfit is told as a warning there.
    await users.layout().catch(() => undefined);
  } catch (error) {
    if (!(error instanceof AppError)) {
      await connection.close();
      throw error;
    }
    onWarning(`MongoDB is not ready, items are answered 503 until it is: ${String(error.cause)}`);
  }
  return new MongoStore(connection, setup, users, slots);
}

class MongoStore implements Store {
  readonly name = 'mongodb';
  readonly items: MongoItems;
  readonly users: MongoUsers;
  readonly #connection: MongoConnection;
  readonly #setup: Setup;
  readonly #finders: readonly Finder[];

  constructor(connection: MongoConnection, setup: Setup, users: Setup, slots: Slots) {
    this.#connection = connection;
    this.#setup = setup;
    const [finder, userFinder] = [new Finder(connection, setup), new Finder(connection, users)];
    this.#finders = [finder, userFinder];
    this.items = new MongoItems(connection, setup, finder, slots);
    const rows = new MongoItems(connection, users, userFinder, slots); // users are read as items are
    this.users = new MongoUsers(connection, users, rows);
  }

  async ping(): Promise<void> {
    await this.#setup.layout();
    await this.#connection.run({ ping: 1 });
  }

  async close(): Promise<void> {
    await Promise.all(this.#finders.map((finder) => finder.settle()));
    await this.#connection.close();
  }
}
