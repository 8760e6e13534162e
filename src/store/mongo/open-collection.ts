import type { Document } from 'mongodb';
import type { Slots } from '../slots.ts';
import type { Declaration, Found } from '../store.ts';
import type { MongoConnection } from './connection.ts';
import { MongoFeed, type FeedParts } from './feed/feed.ts';
import { LookUp } from './feed/look-up.ts';
import type { DatabaseStream } from './feed/stream.ts';
import { ownCollections, whyRefused } from './discovery.ts';
import { MongoRefusal } from './errors.ts';
import type { LayoutOptions } from './collection.ts';
import { Finder } from './find.ts';
import { Layouts, type LookTiming } from './layouts.ts';
import type { FindWay } from './reply.ts';
import { MongoCollection } from './resource.ts';

/** What opening a collection requires of the store. */
export interface CollectionParts {
  /** The connection to the collection's database, and the way its rows are read. */
  readonly connection: MongoConnection;
  readonly way: FindWay;
  /** The changes of that database. */
  readonly stream: DatabaseStream;
  readonly streamWith: FeedParts['streamWith'];
  /** The name of the database that the server keeps its own collections in. */
  readonly ownDatabase: string;
  /** See MongoOptions. */
  readonly prefix: string | undefined;
  readonly slots: Slots;
  readonly manage: boolean;
  readonly unmanaged?: string;
  readonly tellsServer?: boolean;
  readonly watch: LookTiming;
  readonly onWarning: (message: string) => void;
  readonly onNotice: ((message: string) => void) | undefined;
  readonly onForeign: LayoutOptions['onForeign'];
}

/** A collection that is open, and what must be closed with the store. */
export interface OpenCollection {
  readonly rows: MongoCollection;
  readonly layouts: Layouts;
}

/** The collection of a declaration. Nothing is asked of the server before its first use. */
export function collectionOf(
  declaration: Declaration,
  {
    connection,
    way,
    stream,
    streamWith,
    ownDatabase,
    prefix,
    slots,
    watch: timing,
    ...options
  }: CollectionParts,
): OpenCollection {
  const { collection, indexes, create } = declaration;
  const own = connection.database === ownDatabase ? whyOwn(collection, prefix) : undefined;
  if (own !== undefined) throw new MongoRefusal(`The collection '${collection}' is not served: ${own}.`);
  const layouts = new Layouts(connection, { ...options, collection, indexes, create }, timing);
  const finder = new Finder(way, layouts);
  const lookUp = new LookUp({ layouts, finder, slots });
  const changes = new MongoFeed({ connection, layouts, lookUp, stream, streamWith });
  const rows = new MongoCollection({ connection, layouts, finder, slots, declaration, changes });
  return { rows, layouts };
}

/** See Store.list. */
export async function listCollections(
  connection: MongoConnection,
  prefix?: string,
): Promise<readonly Found[]> {
  const { database } = connection;
  await connection.connect(); // again, if the server was away at the start
  const command = { listCollections: 1, cursor: { batchSize: 100_000 } };
  const { cursor } = await connection.run(command, { readPreference: 'primaryPreferred' });
  return (cursor as { firstBatch: Document[] }).firstBatch
    .map((one): Found => {
      const collection = String(one.name);
      const refused = whyOwn(collection, prefix) ?? whyRefused(database, one);
      return { database, collection, ...(refused !== undefined && { refused }) };
    })
    .sort((a, b) => (a.collection < b.collection ? -1 : 1));
}

function whyOwn(collection: string, prefix: string | undefined): string | undefined {
  return ownCollections(prefix).includes(collection)
    ? 'this server keeps its own records there, unless MONGODB_PREFIX gives them other names'
    : undefined;
}
