import type { Binary, Document } from 'mongodb';
import { MaxKey, MinKey, UUID } from '../bson.ts';
import type { Declaration } from '../store.ts';
import { ensureCollection, UNMANAGED, type Layout, type SetupTask } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { MongoRefusal } from './errors.ts';
import { hasArrays, indexFrom, listIndexes, type Listed } from './index-list.ts';
import { createMissing, specOf, withKey } from './missing-indexes.ts';
import { joinPaths, namedIndex, type IndexPaths } from './plan.ts';

/** Databases that belong to the server. */
const RESERVED_DATABASES: readonly string[] = ['admin', 'local', 'config'];
/** The collections that this server keeps for itself in its own database. */
export function ownCollections(prefix = ''): readonly string[] {
  return ['users', 'exports', 'exports.files', 'exports.chunks'].map((name) => prefix + name);
}

/**
 * Makes the setup of a declared collection: reads what it is and which of its indexes can be used. It creates nothing but
 * the collection and the indexes that the declaration wants, where the task allows it. It rejects with MongoRefusal when
 * the collection is missing or unfit.
 */
export function setUpDeclared({ indexes: wanted, create }: Pick<Declaration, 'indexes' | 'create'>) {
  return async (connection: MongoConnection, task: SetupTask): Promise<Layout> => {
    const { collection, server } = task;
    const name = `${connection.database}.${collection}`;
    const existing = await ensureCollection(connection, task, create);
    const refused = whyRefused(connection.database, existing);
    if (refused !== undefined) throw new MongoRefusal(`The collection '${name}' is not served: ${refused}.`);
    const before = await listIndexes(connection, collection);
    const listed = (await createMissing(connection, task, wanted, before))
      ? await listIndexes(connection, collection)
      : before;
    const all = await indexesFrom(connection, collection, listed);
    const faults = faultsOf(connection, task, wanted, all);
    for (const index of all.found.filter(hasArrays))
      if (!faults.has(joinPaths(index.keys.map(({ path }) => path))))
        task.onWarning(`The index '${index.name}' of '${name}' is not used: ${index.refused ?? ''}.`);
    if (create && !(existing.options as Document | undefined)?.validator)
      task.onWarning(
        `The collection '${collection}' has no validator. A value that is an array would make its indexes multikey, and reads that need them would be refused.`,
      );
    const { uuid } = (existing.info ?? {}) as { readonly uuid?: Binary };
    const layout: Layout = {
      clustered: listed.some(({ spec }) => spec.clustered === true),
      sharded: server.isSharded,
      identity: uuid && Buffer.from(uuid.buffer).toString('hex'),
      ...all,
      faults,
      wanted: wanted.map((fields) => joinPaths(withKey(fields))),
    };
    const end = await endOf(connection, collection, layout);
    if (end !== null) throw new MongoRefusal(`The collection '${name}' is not served: ${end}.`);
    return layout;
  };
}

/** Why reads cannot use indexes that are wanted, and what their operator can do. */
function faultsOf(
  { database }: MongoConnection,
  { collection, manage, unmanaged = UNMANAGED }: SetupTask,
  wanted: Declaration['indexes'],
  { indexes, found }: Pick<Layout, 'indexes' | 'found'>,
): Layout['faults'] {
  const subject = `db.getSiblingDB(${JSON.stringify(database)}).getCollection(${JSON.stringify(collection)})`;
  const faults = new Map<IndexPaths, string>();
  for (const fields of wanted.map(withKey)) {
    const paths = joinPaths(fields);
    const ofPaths = found.filter(({ keys }) => joinPaths(keys.map(({ path }) => path)) === paths);
    if (indexes.has(paths) || ofPaths.some(({ refused }) => refused === undefined)) continue;
    const create = `${subject}.createIndex(${JSON.stringify(specOf(fields).key)})`;
    const [unfit] = ofPaths;
    if (!unfit)
      faults.set(
        paths,
        `an index on ${fields.join(', ')} is missing${manage ? '' : `, and ${unmanaged}`}: run ${create}`,
      );
    else {
      const drop = `${subject}.dropIndex(${JSON.stringify(unfit.name)})`;
      faults.set(
        paths,
        `the index '${unfit.name}' cannot be used: ${unfit.refused ?? ''}: run ${drop}; ${create}`,
      );
    }
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
 * Why an index of a layout can no longer be used. Null when nothing has changed. Multikey is sticky, so the look also
 * sees an array that came and went.
 */
export async function changeOf(
  connection: MongoConnection,
  collection: string,
  layout: Layout,
  index: IndexPaths,
): Promise<string | null> {
  const name = layout.indexes.get(index);
  const [end, listed] = await Promise.allSettled([
    endOf(connection, collection, layout),
    listIndexes(connection, collection),
  ]);
  if (end.status === 'rejected') throw end.reason; // this error says more
  if (listed.status === 'rejected') throw listed.reason;
  if (end.value !== null) return end.value;
  const now = listed.value.find(({ spec }) => spec.name === name);
  if (!now) return `the index ${name ?? ''} is gone`;
  const { refused } = await indexFrom(connection, collection, now);
  if (refused !== undefined) return `the index ${now.spec.name} cannot be used: ${refused}`;
  return JSON.stringify(now.spec) === layout.specs.get(index) ? null : 'its index was replaced';
}

/**
 * A row whose key is MinKey or MaxKey lies where bounds end, and no read could promise to have it. Null: there is none.
 * Fails unless the collection is the one of the layout.
 */
async function endOf(
  connection: MongoConnection,
  collection: string,
  { identity }: Pick<Layout, 'identity'>,
): Promise<string | null> {
  const ends = await Promise.all(
    [new MinKey(), new MaxKey()].map(async ($eq) => {
      const find = {
        find: collection,
        filter: { _id: { $eq } },
        ...{ projection: { _id: 1 }, limit: 1, singleBatch: true },
      };
      const named = identity === undefined ? find : { ...find, collectionUUID: new UUID(identity) };
      const { cursor } = await connection.run(named, { readPreference: 'primaryPreferred', causal: false });
      return (cursor as { firstBatch: unknown[] }).firstBatch.length;
    }),
  );
  return ends.some((rows) => rows > 0)
    ? 'a row has the _id MinKey or MaxKey, which no bounds can include'
    : null;
}

/** What a layout says of indexes that were listed. */
export async function indexesFrom(
  connection: MongoConnection,
  collection: string,
  listed: readonly Listed[],
): Promise<Pick<Layout, 'indexes' | 'specs' | 'found'>> {
  const found = await Promise.all(listed.map((one) => indexFrom(connection, collection, one)));
  const indexes = new Map<IndexPaths, string>();
  const specs = new Map<IndexPaths, string>();
  for (const [n, index] of found.entries()) {
    if (index.refused !== undefined) continue;
    const isAscending = index.keys.every(({ sign }) => sign === 1);
    const paths = joinPaths(index.keys.map(({ path }) => path));
    for (const key of [namedIndex(index), ...(isAscending && !indexes.has(paths) ? [paths] : [])]) {
      indexes.set(key, index.name);
      specs.set(key, JSON.stringify(listed[n]?.spec));
    }
  }
  return { indexes, specs, found };
}
