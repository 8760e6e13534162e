import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Slots } from '../../src/store/slots.ts';
import type { Store } from '../../src/store/store.ts';
import { whyNoMongod } from '../support/store/mongo/mongod.ts';
import { testMongoStore, WAYS, type MongoTestOptions, type OpenMongo } from '../support/store/mongo/mongo.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';

/** A new, empty store. The port has no delete, so the adapter's tests provide one. */
export interface OpenStore {
  readonly store: Store;
  readonly slots: Slots;
  /** Deletes the item of this id (a value of the bson package, or a string), as another program might. */
  readonly remove: (id: unknown) => Promise<void>;
}

/** An implementation of a port. `skip`: why it cannot run on this machine. `open` cleans up by `t.after`. */
export interface Adapter<Opened> {
  readonly name: string;
  readonly skip: string | false;
  readonly open: (t: TestContext) => Promise<Opened>;
}

/** Declares a test of a contract, which gets what its adapter opened. */
export type ContractTest<Opened> = (
  title: string,
  run: (opened: Opened, t: TestContext) => Promise<void>,
) => void;

/** Runs a contract on each adapter. No other code skips an adapter. */
export function onEach<Opened, Its extends Adapter<Opened>>(
  adapters: readonly (Its & Adapter<Opened>)[],
  contract: (test: ContractTest<Opened>, adapter: Its) => void,
): void {
  for (const adapter of adapters) {
    const { name, skip, open } = adapter;
    contract((title, run) => {
      test(`${name}: ${title}`, { skip }, async (t) => run(await open(t), t));
    }, adapter);
  }
}

export const NO_MONGOD = await whyNoMongod();

/** A store on the shared mongod, for an adapter with `skip: NO_MONGOD`. */
export async function openMongo(t: TestContext, options: MongoTestOptions = {}): Promise<OpenMongo> {
  return (await testMongoStore(t, options)) ?? assert.fail('the adapter is not skipped without a mongod');
}

export const SQLITE: readonly Adapter<OpenStore>[] = [{ name: 'sqlite', skip: false, open: testSqlite }];

/** MongoDB in both ways of reading. */
export const MONGO: readonly Adapter<OpenStore>[] = WAYS.map(({ name, lane }) => ({
  name: `mongodb ${name}`,
  skip: NO_MONGOD,
  open: (t) => openMongo(t, { lane }),
}));

/** Collections that another program made, without the clustered index that an own one has. */
export const PLAIN_MONGO: readonly Adapter<OpenStore>[] = WAYS.map(({ name, lane }) => ({
  name: `mongodb ${name}, plain collection`,
  skip: NO_MONGOD,
  open: (t) => openMongo(t, { lane, existing: {} }),
}));
