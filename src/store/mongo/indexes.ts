import type { Document } from 'mongodb';
import type { MongoConnection } from './connection.ts';
import { CODES, codeOf } from './errors.ts';
import { INDEX_KEYS } from './plan.ts';
import type { IndexRole } from './plan.ts';
import { storeUnavailable } from '../../errors.ts';

/** An index's description as `listIndexes` gives it. */
interface IndexInfo extends Document {
  readonly name: string;
  readonly key: Readonly<Record<string, unknown>>;
}

/** The indexes found for each role: those with its key, sound ones first. */
export interface FoundIndexes {
  readonly clustered: boolean;
  readonly byRole: Readonly<Record<IndexRole, readonly IndexInfo[]>>;
}

/** Why indexes cannot be read by: a sentence for each role that has a fault, with the index's name. */
export type IndexFaults = Readonly<Partial<Record<IndexRole, string>>>;

export const ROLES = Object.keys(INDEX_KEYS) as IndexRole[];

/** What an index may not be, to hold every row once in BSON's order. */
const FAULTS: readonly { readonly option: string; readonly says: string }[] = [
  { option: 'partialFilterExpression', says: 'is partial: it lacks rows' },
  { option: 'sparse', says: 'is sparse: it lacks rows' },
  { option: 'hidden', says: 'is hidden: reads cannot use it' },
  { option: 'collation', says: 'has a collation: its order of strings is another' },
];

/** Only reads of rows wait for a member to catch up: a secondary might not know yet what was just created. */
const FRESH = { readPreference: 'primaryPreferred' } as const;

export async function readIndexes(connection: MongoConnection, collection: string): Promise<FoundIndexes> {
  const reply = await connection.run({ listIndexes: collection, cursor: { batchSize: 1_000 } }, FRESH);
  const all = (reply.cursor as { firstBatch: IndexInfo[] }).firstBatch;
  const byRole = mapRoles((role) => {
    const key = JSON.stringify(INDEX_KEYS[role].map((field) => [field, 1]));
    const matching = all.filter((index) => JSON.stringify(Object.entries(index.key)) === key);
    return matching.sort((a, b) => faultsOf(a).length - faultsOf(b).length);
  });
  return { clustered: all.some((index) => index.clustered === true), byRole };
}

export function missingIndexes({ byRole }: FoundIndexes): IndexRole[] {
  return ROLES.filter((role) => byRole[role].length === 0);
}

export function roleNames({ byRole }: FoundIndexes): Record<IndexRole, string> {
  return mapRoles((role) => byRole[role][0]?.name ?? '');
}

/** All that `listIndexes` says of each role's index, as one text: it differs once the index is another one. */
export function roleSpecs({ byRole }: FoundIndexes): Record<IndexRole, string> {
  return mapRoles((role) => JSON.stringify(byRole[role][0] ?? null));
}

/** Why the indexes found cannot be read by. */
export async function indexFaults(
  connection: MongoConnection,
  collection: string,
  found: FoundIndexes,
): Promise<IndexFaults> {
  const faults = await Promise.all(ROLES.map((role) => indexFault(connection, collection, found, role)));
  const entries = ROLES.map((role, n) => [role, faults[n]] as const);
  return Object.fromEntries(entries.filter(([, fault]) => fault !== undefined));
}

/** Why the index found for a role cannot be read by, and what its operator can do; undefined when it can. */
export async function indexFault(
  connection: MongoConnection,
  collection: string,
  { byRole }: FoundIndexes,
  role: IndexRole,
): Promise<string | undefined> {
  const [index] = byRole[role];
  const fields = INDEX_KEYS[role];
  const { drop, create } = remedyOf(connection.database, collection, role, index?.name ?? '');
  if (!index) return `an index on ${fields.join(', ')} is missing: run ${create}`;
  const [fault] = faultsOf(index);
  if (fault !== undefined) return `${fault}: run ${drop}; ${create}`;
  if (role === 'id' || !(await isMultikey(connection, collection, index.name))) return undefined;
  const where = fields.filter((field) => field !== '_id').join(' or ');
  // Multikey is sticky: an index stays so when the array is gone.
  return `the index '${index.name}' is multikey: some item has, or had, an array in ${where}. Take the arrays out, then run ${drop}; ${create}`;
}

function faultsOf(index: IndexInfo): string[] {
  return FAULTS.filter(({ option }) => Boolean(index[option])).map(
    ({ says }) => `the index '${index.name}' ${says}`,
  );
}

/** Lines for mongosh. */
function remedyOf(database: string, collection: string, role: IndexRole, name: string) {
  const subject = `db.getSiblingDB(${JSON.stringify(database)}).getCollection(${JSON.stringify(collection)})`;
  const key = JSON.stringify(Object.fromEntries(INDEX_KEYS[role].map((field) => [field, 1])));
  return {
    drop: `${subject}.dropIndex(${JSON.stringify(name)})`,
    create: `${subject}.createIndex(${key})`,
  };
}

/** Only a plan tells. The server's error for an index that is still being built is that there is none: it will be ready. */
async function isMultikey(connection: MongoConnection, collection: string, hint: string): Promise<boolean> {
  const command = { find: collection, hint, limit: 1 };
  try {
    const plan = await connection.run({ explain: command, verbosity: 'queryPlanner' }, FRESH);
    return hasMultikeyStage(plan.queryPlanner);
  } catch (error) {
    if (codeOf(error) === CODES.badValue) throw storeUnavailable(error);
    throw error;
  }
}

/** What leads from a plan to its stages: those of one server, of the slot-based engine, and of shards. */
const STAGES = ['winningPlan', 'queryPlan', 'inputStage', 'inputStages', 'thenStage', 'elseStage', 'shards'];

/** Whether a stage of a plan reads a multikey index. Only stages are looked at: names and bounds may hold any text. */
export function hasMultikeyStage(plan: unknown): boolean {
  if (Array.isArray(plan)) return plan.some(hasMultikeyStage);
  if (typeof plan !== 'object' || plan === null) return false;
  const stage = plan as Readonly<Record<string, unknown>>;
  return stage.isMultiKey === true || STAGES.some((name) => hasMultikeyStage(stage[name]));
}

function mapRoles<T>(valueOf: (role: IndexRole) => T): Record<IndexRole, T> {
  return Object.fromEntries(ROLES.map((role) => [role, valueOf(role)])) as Record<IndexRole, T>;
}
