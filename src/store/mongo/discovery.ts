import type { Binary, Document } from 'mongodb';
import { MaxKey, MinKey } from '../bson.ts';
import { documentsOf, findOne, PRIMARY_FIRST } from './commands.ts';
import type { Index } from '../indexes.ts';
import { UNMANAGED, type Layout, type LayoutOptions } from './create-collection.ts';
import type { MongoConnection } from './connection.ts';
import { MongoRefusal } from './errors.ts';
import { hasArrays, indexFrom, listIndexes, type Listed } from './index-list.ts';
import { createMissing, specOf, withKey } from './make-indexes.ts';
import { joinPaths, namedIndex, type IndexPaths } from './plan.ts';

/** Databases that belong to the server. */
const RESERVED_DATABASES: readonly string[] = ['admin', 'local', 'config'];
/** The collections that this server keeps for itself in its own database. */
export function ownCollections(prefix = ''): readonly string[] {
  return ['users', 'exports', 'exports.files', 'exports.chunks'].map((name) => prefix + name);
}

/**
 * What a look finds: what a collection is, and which of its indexes can be used. Creates the wanted indexes that are
 * missing, where the options allow it. Rejects with MongoRefusal when the collection is unfit. `existing` is its
 * description.
 */
export async function layoutOf(
  connection: MongoConnection,
  options: LayoutOptions,
  existing: Document,
  isSharded: boolean,
): Promise<Layout> {
  const { collection, create, onWarning } = options;
  const name = `${connection.database}.${collection}`;
  const wanted = options.indexes.map(withKey);
  const refused = whyRefused(connection.database, existing);
  if (refused !== undefined) throw new MongoRefusal(`The collection '${name}' is not served: ${refused}.`);
  const before = await listIndexes(connection, collection);
  const hasCreated = await createMissing(connection, options, wanted, before);
  const listed = hasCreated ? await listIndexes(connection, collection) : before;
  const all = await indexesFrom(connection, collection, listed);
  const faults = faultsOf(connection, options, wanted, all.indexes);
  for (const index of all.indexes.filter(hasArrays))
    if (!faults.has(pathsOf(index)))
      onWarning(`The index '${index.name}' of '${name}' is not used: ${index.refused ?? ''}.`);
  if (create && !(existing.options as Document | undefined)?.validator)
    onWarning(
      `The collection '${collection}' has no validator. A value that is an array would make its indexes multikey, and reads that need them would be refused.`,
    );
  const { uuid } = (existing.info ?? {}) as { readonly uuid?: Binary };
  const layout: Layout = {
    clustered: listed.some(({ spec }) => spec.clustered === true),
    sharded: isSharded,
    identity: uuid && Buffer.from(uuid.buffer).toString('hex'),
    ...all,
    faults,
    wanted: wanted.map(joinPaths),
  };
  const end = await faultOfKey(connection, collection, layout);
  if (end !== null) throw new MongoRefusal(`The collection '${name}' is not served: ${end}.`);
  return layout;
}

function pathsOf({ keys }: Index): IndexPaths {
  return joinPaths(keys.map(({ path }) => path));
}

/** Why reads cannot use indexes that are wanted, and what their operator can do. */
function faultsOf(
  { database }: MongoConnection,
  { collection, manage, unmanaged = UNMANAGED }: LayoutOptions,
  wanted: readonly (readonly string[])[],
  found: readonly Index[],
): Layout['faults'] {
  const subject = `db.getSiblingDB(${JSON.stringify(database)}).getCollection(${JSON.stringify(collection)})`;
  const faults = new Map<IndexPaths, string>();
  for (const fields of wanted) {
    const paths = joinPaths(fields);
    const ofPaths = found.filter((index) => pathsOf(index) === paths);
    if (ofPaths.some(({ refused }) => refused === undefined)) continue;
    const [unfit] = ofPaths;
    const fault = unfit
      ? `the index '${unfit.name}' cannot be used: ${unfit.refused ?? ''}: run ${subject}.dropIndex(${JSON.stringify(unfit.name)});`
      : `an index on ${fields.join(', ')} is missing${manage ? '' : `, and ${unmanaged}`}: run`;
    faults.set(paths, `${fault} ${subject}.createIndex(${JSON.stringify(specOf(fields).key)})`);
  }
  return faults;
}

/** Why a collection cannot be served, from its `listCollections` description: the end of a sentence. */
export function whyRefused(database: string, { name, type, options = {} }: Document): string | undefined {
  const { collation } = options as Document;
  if (RESERVED_DATABASES.includes(database)) return `the database ${database} belongs to MongoDB itself`;
  if (String(name).startsWith('system.')) return 'it belongs to MongoDB itself';
  if (type === 'timeseries') return 'it is a time series, which has no indexes that pages could use';
  if (type !== 'collection') return `it is a ${String(type)}, not a collection`;
  if (collation)
    return `it has a default collation (${String((collation as Document).locale)}), so its order of texts is another`;
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

/** What a layout says of indexes that were listed. */
async function indexesFrom(
  connection: MongoConnection,
  collection: string,
  listed: readonly Listed[],
): Promise<Pick<Layout, 'indexes' | 'names'>> {
  const indexes = await Promise.all(listed.map((one) => indexFrom(connection, collection, one)));
  const names = new Map<IndexPaths, string>();
  for (const index of indexes) {
    if (index.refused !== undefined) continue;
    const isAscending = index.keys.every(({ sign }) => sign === 1);
    const paths = pathsOf(index);
    for (const key of [namedIndex(index), ...(isAscending && !names.has(paths) ? [paths] : [])])
      names.set(key, index.name);
  }
  return { indexes, names };
}
