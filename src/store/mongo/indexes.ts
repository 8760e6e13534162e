import type { Document } from 'mongodb';
import type { MongoConnection } from './connection.ts';
import { CODES, serverCodeOf } from './errors.ts';
import { BY_KEY, splitPaths, type IndexPaths } from './plan.ts';
import { storeUnavailable } from '../../errors.ts';

/** An index's description as returned by `listIndexes`. */
interface IndexInfo extends Document {
  readonly name: string;
  readonly key: Readonly<Record<string, unknown>>;
}

/** The indexes found for the paths that were asked for: those with these fields, sound ones first. */
export interface FoundIndexes {
  readonly clustered: boolean;
  readonly byPaths: ReadonlyMap<IndexPaths, readonly IndexInfo[]>;
}

/** Why indexes cannot be used for reads: one sentence with the index's name for each that has a fault. */
export type IndexFaults = ReadonlyMap<IndexPaths, string>;

/** The options that keep an index from holding every row exactly once in BSON's order. */
const FAULTS: readonly { readonly option: string; readonly says: string }[] = [
  { option: 'partialFilterExpression', says: 'is partial, so it lacks rows' },
  { option: 'sparse', says: 'is sparse, so it lacks rows' },
  { option: 'hidden', says: 'is hidden, so reads cannot use it' },
  { option: 'collation', says: 'has a collation, so its order of strings is another' },
];

/** Only reads of rows wait for a member to catch up. A secondary might not know yet what was just created. */
const FRESH = { readPreference: 'primaryPreferred' } as const;

/** Reads the indexes of a collection (`listIndexes`). Rejects as MongoConnection.run does. */
export async function readIndexes(
  connection: MongoConnection,
  collection: string,
  wanted: readonly IndexPaths[],
): Promise<FoundIndexes> {
  const reply = await connection.run({ listIndexes: collection, cursor: { batchSize: 1_000 } }, FRESH);
  const all = (reply.cursor as { firstBatch: IndexInfo[] }).firstBatch;
  const byPaths = new Map(
    wanted.map((paths) => {
      const key = JSON.stringify(splitPaths(paths).map((path) => [path, 1]));
      const matching = all.filter((index) => JSON.stringify(Object.entries(index.key)) === key);
      return [paths, matching.sort((a, b) => faultsOf(a).length - faultsOf(b).length)];
    }),
  );
  return { clustered: all.some((index) => index.clustered === true), byPaths };
}

/** The paths without an index. */
export function missingIndexes({ byPaths }: FoundIndexes): IndexPaths[] {
  return [...byPaths].filter(([, indexes]) => indexes.length === 0).map(([paths]) => paths);
}

/** The name of the index for each of the paths. Absent when there is none. */
export function indexNames({ byPaths }: FoundIndexes): ReadonlyMap<IndexPaths, string> {
  return new Map([...byPaths].flatMap(([paths, [index]]) => (index ? [[paths, index.name] as const] : [])));
}

/**
 * The full `listIndexes` description of each index, as text. It changes when the index is replaced by a different one.
 */
export function indexSpecs({ byPaths }: FoundIndexes): ReadonlyMap<IndexPaths, string> {
  return new Map([...byPaths].map(([paths, [index]]) => [paths, JSON.stringify(index ?? null)]));
}

/** Why the indexes that were found cannot be used for reads. */
export async function indexFaults(
  connection: MongoConnection,
  collection: string,
  found: FoundIndexes,
): Promise<IndexFaults> {
  const all = await Promise.all(
    [...found.byPaths.keys()].map(
      async (paths) => [paths, await indexFault(connection, collection, found, paths)] as const,
    ),
  );
  return new Map(all.flatMap(([paths, fault]) => (fault === undefined ? [] : [[paths, fault] as const])));
}

/**
 * Why the index found for these paths cannot be used for reads, and what its operator can do. Undefined when it can be
 * used.
 */
export async function indexFault(
  connection: MongoConnection,
  collection: string,
  { byPaths }: FoundIndexes,
  paths: IndexPaths,
): Promise<string | undefined> {
  const [index] = byPaths.get(paths) ?? [];
  const fields = splitPaths(paths);
  const { drop, create } = remedyOf(connection.database, collection, paths, index?.name ?? '');
  if (!index) return `an index on ${fields.join(', ')} is missing: run ${create}`;
  const [fault] = faultsOf(index);
  if (fault !== undefined) return `${fault}: run ${drop}; ${create}`;
  if (paths === BY_KEY || !(await isMultikey(connection, collection, index.name))) return undefined;
  const where = fields.filter((field) => field !== '_id').join(' or ');
  // Multikey is sticky: an index stays multikey after the array is gone.
  return `the index '${index.name}' is multikey: some item has, or had, an array in ${where}. Remove the arrays, then run ${drop}; ${create}`;
}

function faultsOf(index: IndexInfo): string[] {
  return FAULTS.filter(({ option }) => Boolean(index[option])).map(
    ({ says }) => `the index '${index.name}' ${says}`,
  );
}

/** Commands for mongosh. */
function remedyOf(database: string, collection: string, paths: IndexPaths, name: string) {
  const subject = `db.getSiblingDB(${JSON.stringify(database)}).getCollection(${JSON.stringify(collection)})`;
  const key = JSON.stringify(Object.fromEntries(splitPaths(paths).map((path) => [path, 1])));
  return {
    drop: `${subject}.dropIndex(${JSON.stringify(name)})`,
    create: `${subject}.createIndex(${key})`,
  };
}

/**
 * Only a query plan tells. For an index that is still being built the server reports that there is no such index. It
 * will be ready later.
 */
async function isMultikey(connection: MongoConnection, collection: string, hint: string): Promise<boolean> {
  const command = { find: collection, hint, limit: 1 };
  try {
    const plan = await connection.run({ explain: command, verbosity: 'queryPlanner' }, FRESH);
    return hasMultikeyStage(plan.queryPlanner);
  } catch (error) {
    if (serverCodeOf(error) === CODES.badValue) throw storeUnavailable(error);
    throw error;
  }
}

/** The fields that lead from a plan to its stages: of one server, of the slot-based engine, and of shards. */
const STAGES = ['winningPlan', 'queryPlan', 'inputStage', 'inputStages', 'thenStage', 'elseStage', 'shards'];

/**
 * Whether a stage of a plan reads a multikey index. Only stages are searched: names and bounds may contain any text.
 */
export function hasMultikeyStage(plan: unknown): boolean {
  return stagesOf(plan).some(({ isMultiKey }) => isMultiKey === true);
}

/** All stages of a query plan, as `explain` returns it, and the documents that lead to them. */
export function stagesOf(plan: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (Array.isArray(plan)) return plan.flatMap(stagesOf);
  if (typeof plan !== 'object' || plan === null) return [];
  const stage = plan as Readonly<Record<string, unknown>>;
  return [stage, ...STAGES.flatMap((name) => stagesOf(stage[name]))];
}
