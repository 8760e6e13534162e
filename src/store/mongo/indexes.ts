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

const ROLES = Object.keys(INDEX_KEYS) as IndexRole[];

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
  const byRole = Object.fromEntries(
    ROLES.map((role) => {
      const key = JSON.stringify(INDEX_KEYS[role].map((field) => [field, 1]));
      const matching = all.filter((index) => JSON.stringify(Object.entries(index.key)) === key);
      return [role, matching.sort((a, b) => faultsOf(a).length - faultsOf(b).length)];
    }),
  ) as Record<IndexRole, IndexInfo[]>;
  return { clustered: all.some((index) => index.clustered === true), byRole };
}

export function missingIndexes({ byRole }: FoundIndexes): IndexRole[] {
  return ROLES.filter((role) => byRole[role].length === 0);
}

export function roleNames({ byRole }: FoundIndexes): Record<IndexRole, string> {
  return Object.fromEntries(ROLES.map((role) => [role, byRole[role][0]?.name ?? ''])) as Record<
    IndexRole,
    string
  >;
}

/** Why the indexes found cannot be read by: a sentence for each, with the index's name. */
export async function indexFaults(
  connection: MongoConnection,
  collection: string,
  { byRole }: FoundIndexes,
): Promise<string[]> {
  const faults = await Promise.all(
    ROLES.map(async (role) => {
      const [index] = byRole[role];
      if (!index) return [`an index on ${INDEX_KEYS[role].join(', ')} is missing`];
      const found = faultsOf(index);
      if (found.length > 0) return found;
      return (await isMultikey(connection, collection, index.name))
        ? [
            `the index '${index.name}' is multikey: some item has an array in ${INDEX_KEYS[role].join(' or ')}`,
          ]
        : [];
    }),
  );
  return faults.flat();
}

function faultsOf(index: IndexInfo): string[] {
  return FAULTS.filter(({ option }) => Boolean(index[option])).map(
    ({ says }) => `the index '${index.name}' ${says}`,
  );
}

/** Only a plan tells. The server's error for an index that is still being built is that there is none: it will be ready. */
async function isMultikey(connection: MongoConnection, collection: string, hint: string): Promise<boolean> {
  const command = { find: collection, hint, limit: 1 };
  try {
    const plan = await connection.run({ explain: command, verbosity: 'queryPlanner' }, FRESH);
    return JSON.stringify(plan).includes('"isMultiKey":true');
  } catch (error) {
    if (codeOf(error) === CODES.badValue) throw storeUnavailable(error);
    throw error;
  }
}
