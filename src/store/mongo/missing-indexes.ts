import type { Document } from 'mongodb';
import { KEY } from '../bookmark.ts';
import { MAJORITY, type LayoutOptions } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, serverCodeOf } from './errors.ts';
import type { Listed } from './index-list.ts';

/**
 * Creates the wanted indexes (the fields of each) that are missing, and logs each. An index with the same
 * fields in other directions counts as present. Returns whether it created any. Where the server refuses, it warns: the
 * rest of the collection is served. Rejects as MongoConnection.run does.
 */
export async function createMissing(
  connection: MongoConnection,
  { collection, manage, onWarning, onNotice }: LayoutOptions,
  wanted: readonly (readonly string[])[],
  listed: readonly Listed[],
): Promise<boolean> {
  const present = listed.map(({ spec }) => Object.keys(spec.key).join('\0'));
  const missing = wanted.filter((fields) => !present.includes(fields.join('\0')));
  if (missing.length === 0 || !manage) return false;
  const name = `${connection.database}.${collection}`;
  for (const fields of missing) {
    try {
      await createIndexes(connection, collection, [specOf(fields)]);
    } catch (error) {
      if (!REFUSALS.has(serverCodeOf(error))) throw error;
      onWarning(
        `The collection '${name}' lacks the index ${shown(fields)}, and MongoDB did not create it: ${String(error)}`,
      );
      continue;
    }
    onNotice?.(`The server has created the index ${shown(fields)} of '${name}'.`);
  }
  return true;
}

/** Creates indexes, which may take any time. Rejects as MongoConnection.run does. */
export async function createIndexes(
  connection: MongoConnection,
  collection: string,
  indexes: readonly Document[],
  signal?: AbortSignal,
): Promise<void> {
  const command = { createIndexes: collection, indexes, writeConcern: MAJORITY };
  await connection.run(command, { readPreference: 'primary', unlimited: true, ...(signal && { signal }) });
}

/** The fields of an index with the key at its end. */
export function withKey(fields: readonly string[]): readonly string[] {
  return fields.includes(KEY) ? fields : [...fields, KEY];
}

/** MongoDB will not create the index, however often it is asked. */
export const REFUSALS: ReadonlySet<number | undefined> = new Set([
  CODES.unauthorized,
  67, // CannotCreateIndex
  85, // IndexOptionsConflict
  86, // IndexKeySpecsConflict
  171, // CannotIndexParallelArrays
  10334, // BSONObjectTooLarge
]);

/** An index as the server makes it. */
export function specOf(fields: readonly string[]) {
  return {
    key: Object.fromEntries(fields.map((path) => [path, 1])),
    name: fields.map((path) => `${path}_1`).join('_'),
  };
}

function shown(fields: readonly string[]): string {
  return JSON.stringify(specOf(fields).key);
}
