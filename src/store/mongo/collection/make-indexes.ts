import type { Document } from 'mongodb';
import { CommandRefusal } from '../../../base/errors.ts';
import { KEY } from '../../bookmark.ts';
import type { AddedIndex } from '../../store.ts';
import { MAJORITY, ON_PRIMARY } from '../commands.ts';
import { hasRows, type LayoutOptions } from './create-collection.ts';
import type { MongoConnection } from '../connection.ts';
import { CODES, serverCodeOf } from '../errors.ts';
import { indexFrom, listIndexes, type IndexEntry } from './index-list.ts';

/**
 * Creates the wanted indexes (the fields of each) that are missing, and logs each. An index with the same
 * fields in other directions counts as present. Resolves with all that there are. Where the server refuses, it warns: the
 * rest of the collection is served. Rejects as MongoConnection.run does.
 */
export async function createMissing(
  connection: MongoConnection,
  { collection, manage, onWarning, onNotice }: LayoutOptions,
  wanted: readonly (readonly string[])[],
): Promise<readonly IndexEntry[]> {
  const listed = await listIndexes(connection, collection);
  const missing = wanted.filter((fields) => !listed.some((one) => isOf(one, fields)));
  if (missing.length === 0 || !manage) return listed;
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
  return listIndexes(connection, collection);
}

function isOf({ spec }: IndexEntry, fields: readonly string[]): boolean {
  return Object.keys(spec.key).join('\0') === fields.join('\0');
}

/** Creates indexes, which may take any time. Rejects as MongoConnection.run does. */
export async function createIndexes(
  connection: MongoConnection,
  collection: string,
  indexes: readonly Document[],
  signal?: AbortSignal,
): Promise<void> {
  const command = { createIndexes: collection, indexes, writeConcern: MAJORITY };
  await connection.run(command, { ...ON_PRIMARY, limitMs: null, ...(signal && { signal }) });
}

export function withKey(fields: readonly string[]): readonly string[] {
  return fields.includes(KEY) ? fields : [...fields, KEY];
}

/** MongoDB will not create the index, however often it is asked. */
const REFUSALS: ReadonlySet<number | undefined> = new Set([
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

const shown = (fields: readonly string[]) => JSON.stringify(specOf(fields).key);

/** See OwnedCollection.addIndex. MongoDB goes on to build an index whose command was killed. */
export async function addIndex(
  connection: MongoConnection,
  collection: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<AddedIndex> {
  const fields = [...paths, KEY];
  const find = async () => (await listIndexes(connection, collection)).find((one) => isOf(one, fields));
  const before = await find();
  if (!before || before.isBuilding) {
    try {
      await createIndexes(connection, collection, [specOf(fields)], signal);
    } catch (error) {
      throw refusalOf(error, `create the index ${shown(fields)}`);
    }
  }
  const listed = await find();
  if (!listed)
    throw new CommandRefusal(`The index of ${paths.join(', ')} is gone: it was dropped meanwhile.`);
  return { index: await indexFrom(connection, collection, listed), isNew: before?.isBuilding !== false };
}

/** The error of a command that makes something, as CommandRefusal when MongoDB will not make it. */
export function refusalOf(error: unknown, what: string): unknown {
  if (!REFUSALS.has(serverCodeOf(error))) return error;
  return new CommandRefusal(`MongoDB did not ${what}: ${String(error)}`, { cause: error });
}

const PLAIN: readonly string[] = ['v', 'key', 'name', 'ns'];

/** Makes the indexes that were dropped. It may take any time. */
type MakeIndexes = () => Promise<void>;

/**
 * Drops indexes of an empty collection, to be made at once when it has its rows: that costs less than to keep them for
 * each row. Only indexes are dropped that the next start would make if this process were killed: those of `wanted` (the
 * paths of each), without options. Resolves with null when there is none, when the collection has rows, or when this user may not.
 */
export async function postponeIndexes(
  connection: MongoConnection,
  collection: string,
  wanted: readonly (readonly string[])[],
): Promise<MakeIndexes | null> {
  if (await hasRows(connection, collection)) return null;
  const keys = wanted.map((paths) => JSON.stringify(paths.map((path) => [path, 1])));
  const indexes = (await listIndexes(connection, collection))
    .filter(({ spec }) => keys.includes(JSON.stringify(Object.entries(spec.key))))
    .filter(({ spec }) => Object.keys(spec).every((option) => PLAIN.includes(option)))
    .map(({ spec: { key, name } }) => ({ key, name }));
  if (indexes.length === 0) return null;
  try {
    const index = indexes.map(({ name }) => name);
    await connection.run({ dropIndexes: collection, index, writeConcern: MAJORITY }, ON_PRIMARY);
  } catch (error) {
    if (serverCodeOf(error) === CODES.unauthorized) return null;
    throw error;
  }
  return () => createIndexes(connection, collection, indexes);
}
