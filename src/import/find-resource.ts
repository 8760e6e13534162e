import type { Declared } from '../resources/declarations.ts';
import { listsOf, locate } from '../resources/locate.ts';
import type { Declaration, Store } from '../store/store.ts';
import { UsageError } from '../terminal/arguments.ts';

/** A resource that a command names. */
export interface NamedResource {
  readonly declaration: Declaration;
  /** Whether the store has it. */
  readonly exists: boolean;
}

/** The part of a store that finds resources. */
export type ResourceFinder = Pick<Store, 'keepsDeclarations' | 'list'>;

/**
 * Finds the resource of a name: one that the settings declare, else the collection of that name (see EXPOSE). Throws
 * UsageError when the name means two.
 */
export async function findResource(
  name: string,
  declared: readonly Declared[],
  store: ResourceFinder,
): Promise<NamedResource> {
  const lists = listsOf(store);
  const plain: Declared = { name: undefined, collection: name, place: name };
  const located = await Promise.all(
    [...declared.filter(({ pattern }) => !pattern), plain].map(async (one) =>
      store.keepsDeclarations
        ? { ...one, name: one.name ?? one.collection, database: undefined }
        : locate(one, lists),
    ),
  );
  const found = located.find((one) => typeof one !== 'string' && one.name === name) ?? located.at(-1);
  if (found === undefined || typeof found === 'string') throw new UsageError(found ?? name);
  const { database, collection } = found;
  const there = await store.list(database);
  return {
    declaration: { name: found.name, collection, indexes: [], ...(database !== undefined && { database }) },
    exists: there.some((one) => one.collection === collection),
  };
}
