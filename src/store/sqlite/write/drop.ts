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
  }, 'frees');
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

/** See OwnedCollection.removeIndex. No reader uses the index any more; then its space is freed. */
export async function removeIndex(
  core: Core,
  { name, label }: CollectionShape,
  paths: readonly string[],
): Promise<void> {
  const { connection, maintenance, collections, writes } = core;
  const { table, index, number } = await writes.run(() => {
    const collection = collections.get(name);
    assertAlone(core, collection);
    const removed = collection.indexes.find((one) => nameOf(one.paths) === nameOf(paths));
    if (!removed) throw new CommandRefusal(`${label} has no index of ${paths.join(', ')}.`);
    const lastIndex = Math.max(collection.lastIndex ?? 0, removed.number);
    collections.put({
      ...collection,
      indexes: collection.indexes.filter((one) => one !== removed),
      lastIndex,
    });
    const column = columnOf(removed.number);
    return { table: column, index: indexName(collection.number, column), number: collection.number };
  });
  await writes.alone(() => maintenance.run(`drop index if exists ${index};`));
  const freed = `update ${rowsTable(number)} set ${table} = null where n > ? and n <= ?`;
  const isThere = () => collections.find(name)?.number === number;
  const last = (): number =>
    isThere() ? Number(connection.get(`select max(n) n from ${rowsTable(number)}`)?.n ?? 0) : 0;
  for (let from = 0, to = await core.looks.soon(last); from < to; from += FREED_AT_ONCE)
    await writes.run(() => {
      if (isThere()) connection.run(freed, from, from + FREED_AT_ONCE);
    }, 'frees');
}

/** In a transaction. Throws CommandRefusal when an import writes the collection. */
function assertAlone({ options }: Core, { label, imports = [] }: CollectionRecord): void {
  const other = imports.find((one) => isUnderWay(one, options.wallClock()));
  if (other) throw inTheWay(label, other);
}
