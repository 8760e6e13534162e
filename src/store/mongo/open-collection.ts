import { CommandRefusal } from '../../errors.ts';
import type { Slots } from '../slots.ts';
import type { Declaration, Found, OwnedCollection } from '../store.ts';
import { documentsOf, MAJORITY, ON_PRIMARY, PRIMARY_FIRST } from './commands.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, MongoRefusal, serverCodeOf } from './errors.ts';
import { mongoFeed, type FeedParts } from './feed/feed.ts';
import { lookUpIn } from './feed/look-up.ts';
import { ownCollections, whyRefused } from './discovery.ts';
import { describeCollection, type LayoutOptions } from './create-collection.ts';
import { Finder } from './find.ts';
import { Layouts, type LookTiming } from './layouts.ts';
import { refusalOf } from './make-indexes.ts';
import type { FindWay } from './reply.ts';
import { MongoCollection } from './collection.ts';

/** Where the rows of a collection are, and how they are read. */
export interface Ground {
  /** The connection to the collection's database. */
  readonly connection: MongoConnection;
  readonly way: FindWay;
  readonly slots: Slots;
  readonly timing: LookTiming | undefined;
}

/** A collection that is open, and what must be closed with the store. */
export interface OpenCollection<Rows = MongoCollection> {
  readonly rows: Rows;
  readonly layouts: Layouts;
}

/** Opens a collection. Nothing is asked of the server before its first use. `streams`: those of its changes, if it has any. */
export function openCollection(
  { connection, way, slots, timing }: Ground,
  options: LayoutOptions,
  declaration: Pick<Declaration, 'indexes' | 'refusalOf'>,
  streams?: Pick<FeedParts, 'stream' | 'streamWith'>,
): OpenCollection {
  const layouts = new Layouts(connection, options, timing);
  const finder = new Finder(way, layouts);
  const parts = { layouts, finder, slots, declaration };
  if (!streams) return { rows: new MongoCollection(parts), layouts };
  const lookUp = lookUpIn({ layouts, finder, slots });
  const changes = mongoFeed({ connection, layouts, lookUp, ...streams });
  return { rows: new MongoCollection({ ...parts, changes }), layouts };
}

/** See Store.make. `open` opens the collection once it exists. */
export async function makeCollection(
  connection: MongoConnection,
  collection: string,
  open: () => Promise<OpenCollection>,
  report: (line: string) => void,
): Promise<OwnedCollection> {
  await connection.connect();
  if (await create(connection, collection))
    report(`created the collection ${connection.database}.${collection}`);
  const { rows, layouts } = await open().catch((error: unknown) => {
    throw error instanceof MongoRefusal ? new CommandRefusal(error.message, { cause: error }) : error;
  });
  await layouts.layout();
  return rows;
}

/** Creates a collection. False when there is one. */
async function create(connection: MongoConnection, collection: string): Promise<boolean> {
  if (await describeCollection(connection, collection)) return false;
  try {
    await connection.run({ create: collection, writeConcern: MAJORITY }, ON_PRIMARY);
    return true;
  } catch (error) {
    if (serverCodeOf(error) === CODES.namespaceExists) return false;
    throw refusalOf(error, `create the collection ${connection.database}.${collection}`);
  }
}

/** See Store.list. */
export async function listCollections(
  connection: MongoConnection,
  prefix?: string,
): Promise<readonly Found[]> {
  const { database } = connection;
  await connection.connect(); // again, if the server was away at the start
  const command = { listCollections: 1, cursor: { batchSize: 100_000 } };
  return (await documentsOf(connection, command, PRIMARY_FIRST))
    .map((one): Found => {
      const collection = String(one.name);
      const refused = whyOwn(collection, prefix) ?? whyRefused(database, one);
      return { database, collection, ...(refused !== undefined && { refused }) };
    })
    .sort((a, b) => (a.collection < b.collection ? -1 : 1));
}

/** Why a collection of this name in the database of the server is not served, as the end of a sentence. */
export function whyOwn(collection: string, prefix: string | undefined): string | undefined {
  return ownCollections(prefix).includes(collection)
    ? 'this server keeps its own records there, unless MONGODB_PREFIX gives them other names'
    : undefined;
}
