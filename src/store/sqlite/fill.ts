import type { FilledRow, HowToFill, OwnedCollection } from '../collection.ts';
import { reasonOf } from '../../error-reason.ts';
import { addIndexes, fillByInserts, insertAll } from '../fill-by-inserts.ts';
import type { Core } from './core.ts';
import { ImportLease } from './import-lease.ts';
import { SideLoad } from './load.ts';
import type { SetShape } from './sets.ts';

/** See OwnedCollection.fill. */
export async function fillSet(
  core: Core,
  shape: SetShape,
  writes: Pick<OwnedCollection, 'insert' | 'clear' | 'addIndex'>,
  rows: AsyncIterable<readonly FilledRow[]>,
  how: HowToFill,
): Promise<void> {
  await addIndexes(writes, how);
  if (how.isEndless) {
    await fillByInserts(writes, rows, how);
    return core.writes.run(() => core.sets.show(shape.name));
  }
  const lease = await ImportLease.take(core, shape, how.onRemoved !== undefined);
  const { side } = lease;
  let isWhole = false;
  try {
    if (side) await new SideLoad(core, shape, lease, side, how).fill(rows);
    else await insertAll(writes, rows, how);
    isWhole = true;
  } finally {
    await freed(core, lease, !isWhole);
  }
}

/** Frees what the import does not need any more. */
async function freed(core: Core, lease: ImportLease, givesBack: boolean): Promise<void> {
  try {
    await lease.release();
    if (lease.side) await core.sweep(givesBack);
  } catch (error) {
    core.options.onWarning(
      `tables that an import needs no more still take space, until the next start or import: ${reasonOf(error)}`,
    );
  }
}
