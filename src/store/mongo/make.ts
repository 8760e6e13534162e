import { CommandRefusal } from '../../errors.ts';
import type { AddedIndex, OwnedCollection } from '../store.ts';
import { describeCollection, MAJORITY } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, MongoRefusal, serverCodeOf } from './errors.ts';
import { indexFrom, listIndexes } from './index-list.ts';
import { createIndexes, REFUSALS, specOf } from './missing-indexes.ts';
import type { OpenCollection } from './open-collection.ts';
import { KEY } from '../bookmark.ts';

/** See Store.make. `open` opens the collection once it exists. */
export async function makeCollection(
  connection: MongoConnection,
  collection: string,
  open: () => Promise<OpenCollection>,
  tell: (line: string) => void,
): Promise<OwnedCollection> {
  await connection.connect();
  if (await create(connection, collection))
    tell(`created the collection ${connection.database}.${collection}`);
  const { rows, layouts } = await open().catch((error: unknown) => {
    throw error instanceof MongoRefusal ? new CommandRefusal(error.message, { cause: error }) : error;
  });
  await layouts.layout();
  return rows;
}

/** Creates a collection. False when there is one. */
async function create(connection: MongoConnection, collection: string): Promise<boolean> {
  if (await describeCollection(connection, collection)) return false;
  try {
    await connection.run({ create: collection, writeConcern: MAJORITY }, { readPreference: 'primary' });
    return true;
  } catch (error) {
    if (serverCodeOf(error) === CODES.namespaceExists) return false;
    throw refusalOf(error, `create the collection ${connection.database}.${collection}`);
  }
}

/** See OwnedCollection.addIndex. MongoDB goes on to build an index whose command was killed. */
export async function addIndex(
  connection: MongoConnection,
  collection: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<AddedIndex> {
  const fields = [...paths, KEY];
  const find = async () =>
    (await listIndexes(connection, collection)).find(
      ({ spec }) => Object.keys(spec.key).join('\0') === fields.join('\0'),
    );
  const before = await find();
  if (!before || before.isBuilding) {
    try {
      await createIndexes(connection, collection, [specOf(fields)], signal);
    } catch (error) {
      throw refusalOf(error, `create the index ${JSON.stringify(specOf(fields).key)}`);
    }
  }
  const listed = await find();
  if (!listed)
    throw new CommandRefusal(`The index of ${paths.join(', ')} is gone: it was dropped meanwhile.`);
  return { index: await indexFrom(connection, collection, listed), isNew: before?.isBuilding !== false };
}

function refusalOf(error: unknown, what: string): unknown {
  if (!REFUSALS.has(serverCodeOf(error))) return error;
  return new CommandRefusal(`MongoDB did not ${what}: ${String(error)}`, { cause: error });
}
