import { AppError } from '../errors.ts';
import { MongoConnection } from './mongo-connection.ts';
import { MongoItems } from './mongo-items.ts';
import { Setup } from './mongo-setup.ts';
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

const COLLECTION = 'items';

/**
 * The store in MongoDB. Resolves also when the server is away or still builds indexes: everything then rejects with
 * `store-unavailable` until it is back, without a restart. Rejects when it is there and cannot be used: MongoRefusal
 * with what is wrong, or the driver's error about the URI or the credentials.
 */
export async function connectMongo({ uri, slots, manageIndexes, onWarning }: MongoOptions): Promise<Store> {
  const connection = new MongoConnection(uri);
  const setup = new Setup(connection, COLLECTION, manageIndexes, onWarning);
  try {
    await setup.start();
  } catch (error) {
    if (!(error instanceof AppError)) {
      await connection.close();
      throw error;
    }
    onWarning(`MongoDB is not ready, items are answered 503 until it is: ${String(error.cause)}`);
  }
  return new MongoStore(connection, setup, slots);
}

class MongoStore implements Store {
  readonly name = 'mongodb';
  readonly items: MongoItems;
  readonly #connection: MongoConnection;
  readonly #setup: Setup;

  constructor(connection: MongoConnection, setup: Setup, slots: Slots) {
    this.#connection = connection;
    this.#setup = setup;
    this.items = new MongoItems(connection, setup, slots);
  }

  async ping(): Promise<void> {
    await this.#setup.layout();
    await this.#connection.run({ ping: 1 });
  }

  async close(): Promise<void> {
    await this.items.settle();
    await this.#connection.close();
  }
}
