import type { TestContext } from 'node:test';
import { MongoClient, type Document } from 'mongodb';
import { ITEM_COLLECTION } from '../../../../src/resources/item-collection.ts';
import { connectMongo } from '../../../../src/store/mongo.ts';
import { Slots } from '../../../../src/store/slots.ts';
import type { OpenStore } from '../open-store.ts';
import { ownMongod, testMongo } from './mongod.ts';

/** A store in MongoDB, and the same database through the driver alone. */
export interface OpenMongo extends OpenStore {
  readonly uri: string;
  readonly client: MongoClient;
  readonly warnings: readonly string[];
  readonly notices: readonly string[];
}

export interface MongoTestOptions {
  /** Options of a collection that is created beforehand, as another program might have done. */
  readonly existing?: Document;
  readonly manageIndexes?: boolean;
  /** false reads items through the driver as well. */
  readonly lane?: boolean;
}

/** The two ways in which items are read from MongoDB. Each must keep every promise. */
export const WAYS = [
  { name: 'over the lane', lane: true },
  { name: 'through the driver', lane: false },
] as const;

/** A new store on the shared mongod. Resolves with null and skips the test when there is none. */
export async function testMongoStore(
  t: TestContext,
  options: MongoTestOptions = {},
): Promise<OpenMongo | null> {
  const uri = await testMongo(t);
  if (uri === null) return null;
  const client = testClient(t, uri);
  if (options.existing) await client.db().createCollection('items', options.existing);
  return { ...(await openStore(t, uri, options)), client };
}

/** Opens the store of a URI and closes it after the test. */
export async function openStore(
  t: TestContext,
  uri: string,
  { manageIndexes = true, lane = true }: Pick<MongoTestOptions, 'manageIndexes' | 'lane'> = {},
): Promise<Omit<OpenMongo, 'client'>> {
  const slots = new Slots();
  const warnings: string[] = [];
  const notices: string[] = [];
  const store = await connectMongo({
    items: ITEM_COLLECTION,
    uri,
    slots,
    manageIndexes,
    lane,
    onWarning: (message) => warnings.push(message),
    onNotice: (message) => notices.push(message),
  });
  t.after(() => store.close());
  const remover = testClient(t, uri);
  const remove = async (_id: unknown): Promise<void> => {
    await remover
      .db()
      .collection('items')
      .deleteOne({ _id } as Document);
  };
  return { uri, store, slots, remove, warnings, notices };
}

/** A mongod with passwords. `as`: the URI of a user for the database shop. `add`: makes a user with these roles. */
export async function mongodWithUsers(t: TestContext) {
  const set = await ownMongod(t, { replicated: false, arguments: ['--auth'] });
  const member = set?.members[0];
  if (!member) return null;
  const as = (name: string) =>
    `mongodb://${name}:pw@${member.host}/shop?authSource=admin&directConnection=true`;
  const user = (createUser: string, ...roles: unknown[]) => ({ createUser, pwd: 'pw', roles });
  await member.admin((client) => client.db('admin').command(user('root', 'root')));
  const root = testClient(t, as('root'));
  const add = (name: string, ...roles: unknown[]) => root.db('admin').command(user(name, ...roles));
  return { as, add, root };
}

/** A client of the driver, closed after the test. */
export function testClient(t: TestContext, uri: string): MongoClient {
  const client = new MongoClient(uri);
  t.after(() => client.close());
  return client;
}
