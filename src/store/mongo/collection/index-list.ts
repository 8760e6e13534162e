import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import type { Index, IndexKey } from '../../indexes.ts';
import type { MongoConnection } from '../connection.ts';
import { documentsOf, PRIMARY_FIRST } from '../commands.ts';
import { CODES, serverCodeOf } from '../errors.ts';
import { isOfKey } from '../plan.ts';

/** An index as `listIndexes` describes it. */
interface IndexSpec extends Document {
  readonly name: string;
  readonly key: Readonly<Record<string, unknown>>;
}

/** An index, and whether the server still builds it. */
export interface IndexEntry {
  readonly spec: IndexSpec;
  readonly isBuilding: boolean;
}

/** The options that keep an index from holding every row exactly once in BSON's order, and why. */
const UNFIT: readonly { readonly option: string; readonly reason: string }[] = [
  { option: 'partialFilterExpression', reason: 'it is partial, so it lacks rows' },
  { option: 'sparse', reason: 'it is sparse' },
  { option: 'hidden', reason: 'it is hidden' },
  { option: 'collation', reason: 'it has a collation, so its order of texts is another' },
];

/**
 * Lists all indexes of a collection. Rejects as MongoConnection.run does. Only reads of rows wait for a member to catch up: a
 * secondary might not know yet what was just created.
 */
export async function listIndexes(
  connection: MongoConnection,
  collection: string,
): Promise<readonly IndexEntry[]> {
  const list = { listIndexes: collection, cursor: { batchSize: 1_000 }, includeIndexBuildInfo: true };
  return (await documentsOf(connection, list, PRIMARY_FIRST)).map((one) => ({
    spec: one.spec as IndexSpec,
    isBuilding: one.indexBuildInfo !== undefined,
  }));
}

/** What plans may use of a listed index. Asks for a query plan, which alone shows whether rows have arrays there. */
export async function indexFrom(
  connection: MongoConnection,
  collection: string,
  { spec, isBuilding }: IndexEntry,
): Promise<Index> {
  const index = described(spec);
  if (isBuilding) return { ...index, refused: 'it is still being built' };
  if (index.refused !== undefined || isOfKey(index)) return index;
  const scans = await scansOf(connection, collection, spec.name);
  if (!scans) return { ...index, refused: 'the server does not read it now' };
  return { ...index, ...arraysIn(scans) };
}

/**
 * Whether an index is still the one that was found, and fit. One query plan shows that it is there, and all of its
 * options. Multikey is sticky, so it also shows an array that came and went.
 */
export async function isUnchanged(connection: MongoConnection, collection: string, index: Index) {
  const { name } = index;
  const scans = (await scansOf(connection, collection, name)) ?? [];
  const isSame = ({ keyPattern, isUnique: unique, isPartial, isSparse: sparse, collation }: Scan) => {
    const key = keyPattern as IndexSpec['key'];
    const spec = { name, key, unique, partialFilterExpression: isPartial, sparse, collation };
    return isDeepStrictEqual({ ...described(spec), ...arraysIn(scans) }, index);
  };
  return scans.length > 0 && scans.every(isSame);
}

/** An index, and why plans cannot use it as far as its description says. */
function described({ name, key, unique, ...options }: IndexSpec): Index {
  const index = { name, keys: keysOf(key), isUnique: unique === true };
  const refused = whyUnfit({ name, key, ...options });
  if (refused !== undefined) return { ...index, refused };
  return isOfKey(index) ? { ...index, isUnique: true } : index;
}

function keysOf(key: IndexSpec['key']): IndexKey[] {
  return Object.entries(key).map(([path, sign]) => ({ path, sign: Number(sign) < 0 ? -1 : 1 }));
}

function whyUnfit({ key, ...spec }: IndexSpec): string | undefined {
  const option = UNFIT.find((one) => Boolean(spec[one.option]));
  if (option) return option.reason;
  for (const [path, kind] of Object.entries(key)) {
    if (path.split('.').includes('$**')) return 'it is a wildcard index';
    if (typeof kind === 'string') return `it is a ${kind} index`;
    if (Number.isNaN(Number(kind)) || Number(kind) === 0) return 'its order is not known';
    if (path.split('.').some((part) => /^\d+$/.test(part)))
      return `${path} has a number in its path, which may be a place in an array`;
  }
  return undefined;
}

/** Why arrays make an index unfit, and where they are, as its scans show it. Undefined: no row has, or had, one there. */
function arraysIn(scans: readonly Scan[]): Required<Pick<Index, 'refused' | 'arrays'>> | undefined {
  const scan = scans.find(({ isMultiKey }) => isMultiKey === true);
  if (!scan) return undefined;
  const arrays = [...new Set(Object.values((scan.multiKeyPaths ?? {}) as Record<string, string[]>).flat())];
  const where = arrays.length > 0 ? ` in ${arrays.join(' and ')}` : '';
  // Multikey is sticky: an index stays multikey after the array is gone.
  const refused = `some row has, or had, an array${where}: take the arrays out, then drop the index and create it again`;
  return { refused, arrays };
}

type Scan = Readonly<Record<string, unknown>>;

/** The scans of an index by which the server would read all rows, one for each shard. Null: it does not read the index. */
async function scansOf(
  connection: MongoConnection,
  collection: string,
  hint: string,
): Promise<readonly Scan[] | null> {
  const command = { find: collection, hint, limit: 1 };
  try {
    const plan = await connection.run({ explain: command, verbosity: 'queryPlanner' }, PRIMARY_FIRST);
    return stagesOf(plan.queryPlanner).filter(({ isMultiKey }) => isMultiKey !== undefined);
  } catch (error) {
    if (serverCodeOf(error) === CODES.badValue) return null; // it was dropped, hidden or is being built
    throw error;
  }
}

/** The fields that lead from a plan to its stages: of one server, of the slot-based engine, and of shards. */
const STAGES = ['winningPlan', 'queryPlan', 'inputStage', 'inputStages', 'thenStage', 'elseStage', 'shards'];

/** All stages of a query plan and what leads to them. Nothing else is searched: names and bounds may have any text. */
export function stagesOf(plan: unknown): readonly Scan[] {
  if (Array.isArray(plan)) return plan.flatMap(stagesOf);
  if (typeof plan !== 'object' || plan === null) return [];
  const stage = plan as Scan;
  return [stage, ...STAGES.flatMap((name) => stagesOf(stage[name]))];
}
