import { CommandRefusal } from '../../../base/errors.ts';
import { reasonOf } from '../../../base/error-reason.ts';
import type { Core } from '../core.ts';
import { inTheWay } from './import-lease.ts';
import { columnOf, indexName, rowsTable } from '../file/layout.ts';
import { isUnderWay, nameOf, type CollectionRecord, type CollectionShape } from '../file/collections.ts';

/** Rows that one transaction frees of the keys of an index. */
const FREED_AT_ONCE = 10_000;

/** See OwnedCollection.drop. The collection is gone at once; its space is freed afterwards, by the next start where that fails. */
export async function dropCollection(core: Core, { name }: CollectionShape): Promise<void> {
  await core.writes.run(() => {
    assertAlone(core, core.collections.get(name));
    core.collections.remove(name);
  }, 'small');
  try {
    await core.sweep();
  } catch (error) {
    core.options.onWarning(`the space of dropped rows is not free until the next start: ${reasonOf(error)}`);
  }
}

/** See OwnedCollection.rename. `to`: the name in the file, and for messages. */
export async function renameCollection(
  core: Core,
  { name }: CollectionShape,
  to: Pick<CollectionShape, 'name' | 'label'>,
): Promise<void> {
  await core.writes.run(() => {
    const collection = core.collections.get(name);
    assertAlone(core, collection);
    if (core.collections.find(to.name)) throw new CommandRefusal(`There is a resource ${to.label} already.`);
    core.collections.rename(collection, to);
  });
}

/** See OwnedCollection.removeIndex. No reader uses the index any more; then its space is freed, by the next start after a kill. */
export async function removeIndex(
  core: Core,
  { name, label }: CollectionShape,
  paths: readonly string[],
): Promise<void> {
  const { collections, writes } = core;
  await writes.run(() => {
    const collection = collections.get(name);
    assertAlone(core, collection);
    const removed = collection.indexes.find((one) => nameOf(one.paths) === nameOf(paths));
    if (!removed) throw new CommandRefusal(`${label} has no index of ${paths.join(', ')}.`);
    const lastIndex = Math.max(collection.lastIndex ?? 0, removed.number);
    const indexes = collection.indexes.filter((one) => one !== removed);
    collections.put({
      ...collection,
      indexes,
      lastIndex,
      removing: [...(collection.removing ?? []), removed.number],
    });
  });
  await freeIndexes(core, name, () => true);
}

/** Frees the space of removed indexes of a collection, also of those that a killed process has left, until `goesOn` is false. */
export async function freeIndexes(core: Core, name: string, goesOn: () => boolean): Promise<void> {
  const { looks, maintenance, collections, writes } = core;
  while (goesOn()) {
    const found = await looks.soon(() => {
      const collection = collections.find(name);
      const removed = collection?.removing?.[0];
      return collection && removed !== undefined ? { number: collection.number, removed } : null;
    });
    if (!found) return;
    const { number, removed } = found;
    await writes.alone(() =>
      maintenance.run(`drop index if exists ${indexName(number, columnOf(removed))};`),
    );
    if (!(await freeColumn(core, name, { number, removed }, goesOn))) return;
    await writes.run(() => {
      const collection = collections.find(name);
      if (collection?.number !== number) return; // its tables are gone, and so is what the index had there
      const removing = collection.removing?.filter((one) => one !== removed);
      collections.put({ ...collection, removing: removing?.length === 0 ? undefined : removing });
    }, 'small');
  }
}

/** Takes the keys of a removed index out of the rows of a table. Resolves with whether that came to its end. */
async function freeColumn(
  { connection, looks, collections, writes }: Core,
  name: string,
  { number, removed }: { readonly number: number; readonly removed: number },
  goesOn: () => boolean,
): Promise<boolean> {
  const column = columnOf(removed);
  const freed = `update ${rowsTable(number)} set ${column} = null where n > ? and n <= ?`;
  const isThere = () => collections.find(name)?.number === number;
  const last = (): number =>
    isThere() ? Number(connection.get(`select max(n) n from ${rowsTable(number)}`)?.n ?? 0) : 0;
  for (let from = 0, to = await looks.soon(last); from < to; from += FREED_AT_ONCE) {
    if (!goesOn()) return false;
    await writes.run(() => {
      if (isThere()) connection.run(freed, from, from + FREED_AT_ONCE);
    }, 'small');
  }
  return true;
}

/** In a transaction. Throws CommandRefusal when an import writes the collection. */
function assertAlone({ options }: Core, { label, imports = [] }: CollectionRecord): void {
  const other = imports.find((one) => isUnderWay(one, options.wallClock()));
  if (other) throw inTheWay(label, other);
}
