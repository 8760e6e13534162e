import { storeUnfit } from '../../../base/errors.ts';
import type { Count, Declaration, FilledRow, HowToFill, OwnedCollection } from '../../store.ts';
import { KEY } from '../../bookmark.ts';
import { insertAll } from '../../writes/fill-by-inserts.ts';
import { replaceByFilled } from './clear.ts';
import type { MongoConnection } from '../connection.ts';
import type { LayoutOptions } from '../collection/create-collection.ts';
import { ImportLease } from './import-lease.ts';
import { insertRows } from './insert.ts';
import type { Layouts } from '../collection/layouts.ts';
import { postponeIndexes, withKey } from '../collection/make-indexes.ts';

/** A collection that an import fills. */
export interface FillTarget {
  readonly connection: MongoConnection;
  readonly layouts: Layouts;
  readonly rows: Pick<OwnedCollection, 'insert' | 'count'>;
  readonly options: Pick<LayoutOptions, 'collection' | 'manage'>;
  readonly check: Declaration['check'];
  /** The fields of the indexes that the server makes. */
  readonly wanted: readonly (readonly string[])[];
  /** Runs work that replaces the collection by another one. */
  readonly replacing: (work: () => Promise<void>) => Promise<void>;
}

/** Adds rows, which appear as they come. The indexes of an empty collection are made after them. */
export async function addRows(
  { connection, layouts, rows, options: { collection, manage }, wanted }: FillTarget,
  batches: AsyncIterable<readonly FilledRow[]>,
  how: HowToFill,
): Promise<void> {
  const { sharded } = await layouts.layout();
  const isMine = !sharded && manage;
  const make = isMine ? await postponeIndexes(connection, collection, wanted.map(withKey)) : null;
  if (make) {
    layouts.close(); // it would make them at its next look
    how.onPostponed?.();
  }
  try {
    await insertAll(rows, batches, how);
  } finally {
    await make?.();
  }
}

/** Fills a collection beside this one, which readers see until the other one is renamed over it. */
export async function replaceRows(
  filled: FillTarget,
  batches: AsyncIterable<readonly FilledRow[]>,
  how: HowToFill,
  onRemoved: (removed: Count) => void,
): Promise<void> {
  const { connection, options, check, replacing } = filled;
  const { collection } = options;
  await countToReplace(filled, how.signal);
  const lease = await ImportLease.take(connection, collection);
  const result = { written: 0, skipped: 0 };
  const removed: Count[] = [];
  const fill = async (side: string): Promise<void> => {
    const insert: OwnedCollection['insert'] = (rows, onConflict) =>
      insertRows(connection, side, rows, onConflict, check);
    await insertAll({ insert }, batches, {
      onConflict: how.onConflict,
      refuse: how.refuse,
      onWritten: ({ written, skipped }) => {
        result.written += written;
        result.skipped += skipped;
      },
    });
    await lease.assertHeld();
    removed.push(await countToReplace(filled, how.signal));
  };
  try {
    await replacing(() => replaceByFilled(connection, collection, fill));
  } finally {
    await lease.release().catch(() => undefined); // it runs out
  }
  removed.forEach(onRemoved);
  how.onWritten(result);
}

/** The number of rows of a collection that may be replaced. Rejects for another one. */
export async function countToReplace(
  { layouts, rows, options: { collection } }: Pick<FillTarget, 'layouts' | 'rows' | 'options'>,
  signal: AbortSignal,
): Promise<Count> {
  const { sharded } = await layouts.layout(signal);
  if (sharded)
    throw storeUnfit(`The collection '${collection}' may be sharded. Such a collection is not replaced.`);
  const count = await rows.count({ sort: KEY, direction: 1 }, 'exact', signal);
  signal.throwIfAborted();
  return count;
}
