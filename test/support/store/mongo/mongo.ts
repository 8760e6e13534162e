import type { TestContext } from 'node:test';
import { MongoClient, type Db, type Document } from 'mongodb';
import { connectMongo, type MongoOptions } from '../../../../src/store/mongo/mongo-store.ts';
import { Slots } from '../../../../src/store/turns/slots.ts';
import type { OwnedCollection } from '../../../../src/store/store.ts';
import type { OpenStore } from '../open-store.ts';
import { withItems, withThese } from '../with-items.ts';
import { ownMongod, testMongo } from './mongod.ts';

/** A store in MongoDB, and the same database through the driver alone. */
export interface OpenMongo extends OpenStore {
  readonly uri: string;
  readonly client: MongoClient;
  readonly warnings: readonly string[];
  readonly notices: readonly string[];
}

interface StoreOptions extends Partial<MongoOptions> {
  /** False: nobody opens the items, so that nothing is made. */
  readonly items?: boolean;
}

export interface MongoTestOptions extends StoreOptions {
  /** Options of a collection that is created beforehand, as another program might have done. */
  readonly existing?: Document;
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

/** Opens the store of a URI, which may create what it needs, and closes it after the test. */
export async function openStore(
  t: TestContext,
  uri: string,
  { items = true, ...options }: StoreOptions = {},
): Promise<Omit<OpenMongo, 'client'>> {
  const slots = new Slots();
  const warnings: string[] = [];
  const notices: string[] = [];
  const opened = await connectMongo({
    uri,
    slots,
    manageIndexes: true,
    onWarning: (message) => warnings.push(message),
    onNotice: (message) => notices.push(message),
    ...options,
  });
  const store = items ? await withItems(opened) : withThese(opened, notOpened);
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

function notOpened(): OwnedCollection {
  throw new Error('the items of this store were not opened');
}

/** A store on a mongod of its own, whose commands `fail` makes fail in a mode of its fail point. */
export async function failingStore(t: TestContext, options: StoreOptions = {}) {
  const set = await ownMongod(t, { arguments: ['--setParameter', 'enableTestCommands=1'] });
  const member = set?.members[0];
  if (!set || !member) return null;
  // After some answers the driver avoids a member until its monitor has seen it again. The monitor notices a real change
  // at once, but one that a fail point simulates only at its next check.
  const opened = await openStore(t, `${set.uri}&heartbeatFrequencyMS=500`, options);
  const fail = (failCommands: readonly string[], mode: Document | 'off' | 'alwaysOn', how: Document = {}) =>
    member.admin((client) =>
      client.db('admin').command({ configureFailPoint: 'failCommand', mode, data: { failCommands, ...how } }),
    );
  return { ...opened, client: testClient(t, set.uri.replace('/?', '/sluice?')), fail };
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

/** The profiles of all commands on a database while `work` runs. */
export async function profiled(db: Db, work: () => Promise<unknown>): Promise<Document[]> {
  await db.command({ profile: 0 });
  await db.collection('system.profile').drop();
  await db.command({ profile: 2 });
  await work();
  await db.command({ profile: 0 });
  return db.collection('system.profile').find().toArray();
}

/** A client of the driver, closed after the test. */
export function testClient(t: TestContext, uri: string): MongoClient {
  const client = new MongoClient(uri);
  t.after(() => client.close());
  return client;
}
