import { isDeepStrictEqual } from 'node:util';
import type { Binary, Document } from 'mongodb';
import { MaxKey, MinKey } from '../../values/bson.ts';
import { documentsOf, findOne, PRIMARY_FIRST } from '../commands.ts';
import type { Index } from '../../indexes.ts';
import { UNMANAGED, type Layout, type LayoutOptions } from './create-collection.ts';
import type { MongoConnection } from '../connection.ts';
import { MongoRefusal } from '../errors.ts';
import { indexFrom } from './index-list.ts';
import { createMissing, specOf, withKey } from './make-indexes.ts';
import { hasPaths } from '../plan.ts';

/** Databases that belong to the server. */
const RESERVED_DATABASES: readonly string[] = ['admin', 'local', 'config'];
/** The collections that this server keeps for itself in its own database. */
export function ownCollections(prefix = ''): readonly string[] {
  return ['users', 'exports', 'exports.files', 'exports.chunks', 'editions'].map((name) => prefix + name);
}

/**
 * What a collection is, and which of its indexes can be used. Creates the missing ones that the options allow. Rejects
 * with MongoRefusal when the collection is unfit. `existing` is its description.
 */
export async function layoutOf(
  connection: MongoConnection,
  asked: LayoutOptions,
  existing: Document,
  isSharded: boolean,
): Promise<Layout> {
  const { collection, onWarning } = asked;
  const name = `${connection.database}.${collection}`;
  const refused = whyRefused(connection.database, existing);
  if (refused !== undefined) throw new MongoRefusal(`The collection '${name}' is not served: ${refused}.`);
  const options = await admitted(connection, asked, existing);
  const wanted = options.indexes.map(withKey);
  const listed = await createMissing(connection, options, wanted);
  const indexes = await Promise.all(listed.map((one) => indexFrom(connection, collection, one)));
  const usable = indexes.filter((index) => index.refused === undefined);
  const lacking = wanted.filter((fields) => !usable.some((index) => hasPaths(index, fields)));
  for (const index of indexes)
    if (index.arrays && !lacking.some((fields) => hasPaths(index, fields)))
      onWarning(`The index '${index.name}' of '${name}' is not used: ${index.refused ?? ''}.`);
  if (options.create && !(existing.options as Document | undefined)?.validator)
    onWarning(
      `The collection '${collection}' has no validator. A value that is an array would make its indexes multikey, and reads that need them would be refused.`,
    );
  const { uuid } = (existing.info ?? {}) as { readonly uuid?: Binary };
  const layout: Layout = {
    clustered: listed.some(({ spec }) => spec.clustered === true),
    sharded: isSharded,
    identity: uuid && Buffer.from(uuid.buffer).toString('hex'),
    indexes,
    faults: lacking.map((fields) => faultOfFields(connection, options, fields, indexes)),
  };
  const end = await faultOfKey(connection, collection, layout);
  if (end !== null) throw new MongoRefusal(`The collection '${name}' is not served: ${end}.`);
  return layout;
}

/**
 * The options that hold for a collection that exists. Many applications have a collection named users. Its documents may
 * contain password hashes and must not be shown to anybody: a collection for records with other documents is refused,
 * unless its validator excludes them.
 */
async function admitted(
  connection: MongoConnection,
  options: LayoutOptions,
  existing: Document,
): Promise<LayoutOptions> {
  const { collection, create, adopts = true, records, onWarning } = options;
  const { validator } = (existing.options ?? {}) as Document;
  if (adopts || !create || isDeepStrictEqual(validator, create.validator)) return options;
  if (records === undefined)
    return {
      ...options,
      manage: false,
      unmanaged: 'MONGODB_MANAGE_INDEXES=auto creates nothing on a collection of another program',
    };
  const others = findOne(collection, undefined, { $nor: [create.validator] });
  const [stranger] = await documentsOf(connection, others, PRIMARY_FIRST);
  if (stranger)
    throw new MongoRefusal(
      `The collection '${collection}' is not served: it has documents that are not ${records} of this server.`,
    );
  onWarning(
    `The collection '${collection}' has no such validator, so clients would see documents that other programs insert. Its validator should be ${JSON.stringify(create.validator)}`,
  );
  const unmanaged = 'the server indexes only collections that it has made';
  return { ...options, create: undefined, manage: false, unmanaged };
}

/** Why reads cannot use an index that is wanted, and what their operator can do. */
function faultOfFields(
  { database }: MongoConnection,
  { collection, manage, unmanaged = UNMANAGED }: LayoutOptions,
  fields: readonly string[],
  indexes: readonly Index[],
): string {
  const unfit = indexes.find((index) => hasPaths(index, fields));
  const subject = `db.getSiblingDB(${JSON.stringify(database)}).getCollection(${JSON.stringify(collection)})`;
  const fault = unfit
    ? `the index '${unfit.name}' cannot be used: ${unfit.refused ?? ''}: run ${subject}.dropIndex(${JSON.stringify(unfit.name)});`
    : `an index on ${fields.join(', ')} is missing${manage ? '' : `, and ${unmanaged}`}: run`;
  return `${fault} ${subject}.createIndex(${JSON.stringify(specOf(fields).key)})`;
}

/** What an operator can do about rows that are in no plain collection. */
const AS_COLLECTION = 'an aggregation that ends in $merge can copy its rows into a plain collection';

/** Why a collection cannot be served, from its `listCollections` description: the end of a sentence. */
export function whyRefused(database: string, { name, type, options = {} }: Document): string | undefined {
  const { collation } = options as Document;
  if (RESERVED_DATABASES.includes(database)) return `the database ${database} belongs to MongoDB itself`;
  if (String(name).startsWith('system.')) return 'it belongs to MongoDB itself';
  if (/^sluice\.|\.sluice-(empty|import)$/.test(String(name))) return 'it belongs to imports of sluice';
  if (type === 'timeseries')
    return `it is a time series, which has no indexes that pages could use; ${AS_COLLECTION}`;
  if (type !== 'collection') return `it is a ${String(type)}, not a collection; ${AS_COLLECTION}`;
  if (collation)
    return `it has a default collation (${String((collation as Document).locale)}), so its order of texts is another; ${AS_COLLECTION}`;
  return undefined;
}

/**
 * Why reads by the key cannot be relied on: a row whose key is MinKey or MaxKey lies where bounds end, and no read could
 * promise to have it. Null: there is none. Fails unless the collection is the one of the layout, whose index of the key is as
 * old as itself and cannot change.
 */
export async function faultOfKey(
  connection: MongoConnection,
  collection: string,
  { identity }: Pick<Layout, 'identity'>,
): Promise<string | null> {
  const ends = await Promise.all(
    [new MinKey(), new MaxKey()].map(async ($eq) => {
      const find = findOne(collection, identity, { _id: { $eq } });
      return (await documentsOf(connection, find, { ...PRIMARY_FIRST, causal: false })).length;
    }),
  );
  return ends.some((rows) => rows > 0)
    ? 'a row has the _id MinKey or MaxKey, which no bounds can include'
    : null;
}
