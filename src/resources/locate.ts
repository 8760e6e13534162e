import { AppError } from '../base/errors.ts';
import { getOrMake } from '../base/get-or-make.ts';
import type { CollectionEntry, Store } from '../store/store.ts';
import type { CollectionPattern, ItemsMember, ResourceDeclaration } from './declarations.ts';
import type { OwnResource } from './own.ts';

/** A declaration with the collection that it means. */
export interface LocatedDeclaration extends ResourceDeclaration {
  readonly name: string;
  /** Undefined: the store's own. */
  readonly database: string | undefined;
  /** Whether the store has the collection. Null: it is not known, because the store is away. */
  readonly isThere: boolean | null;
  /** Whether it only matches a pattern. */
  readonly isOfPattern?: boolean;
  /** The name of the store's own database, where it is known. */
  readonly ownDatabase?: string | undefined;
  /** Present: the server declares it by itself, so that its faults are none of the settings. */
  readonly own?: OwnResource;
}

/** The collections of a database, absent: of the store's own. Each is listed once. */
export type Lists = (database?: string) => Promise<readonly CollectionEntry[] | null>;

/** `orNull`: a list is null while the store is away. Otherwise it rejects then, so that no collection is taken for gone. */
export function listsOf(store: Pick<Store, 'list'>, orNull: boolean): Lists {
  const lists = new Map<string | undefined, ReturnType<Lists>>();
  return (database) =>
    getOrMake(lists, database, () =>
      store.list(database).then(
        ({ collections }) => collections,
        (error: unknown) => {
          if (orNull && error instanceof AppError && error.code === 'store-unavailable') return null;
          throw error;
        },
      ),
    );
}

/**
 * A name with dots is a collection of the store's own database first, else DATABASE.COLLECTION, which is also the likelier
 * meaning while the store is away. Resolves with a fault when a name means two collections.
 */
export async function locate(
  declared: ResourceDeclaration,
  lists: Lists,
): Promise<LocatedDeclaration | string> {
  const { collection, name, place } = declared;
  const dot = collection.indexOf('.');
  const own = await lists();
  const isOwn = own === null ? null : has(own, collection);
  const ownDatabase = own?.[0]?.database;
  const plain = { ...declared, name: name ?? collection, database: undefined, isThere: isOwn, ownDatabase };
  if (dot <= 0) return plain;
  const database = collection.slice(0, dot);
  const rest = collection.slice(dot + 1);
  const others = await lists(database);
  const elsewhere = { ...declared, name: name ?? rest, collection: rest, database };
  if (!own || !others) return { ...elsewhere, indexes: [], isThere: null }; // no index is made where it may mean another
  const isOther = has(others, rest);
  if (isOwn && isOther)
    return `${place}: ${collection} is a collection of the database of MONGODB_URI, and ${rest} is one of the database ${database}; name one of them otherwise`;
  if (isOwn || !isOther) return plain;
  return { ...elsewhere, isThere: true };
}

/** The collections that a pattern names. Null where the list is. */
export async function locateAll(
  { database, matches }: CollectionPattern,
  { place }: ResourceDeclaration,
  lists: Lists,
): Promise<readonly LocatedDeclaration[] | null> {
  const found = await lists(database);
  if (!found) return null;
  return found
    .filter(({ collection, refused }) => refused === undefined && matches(collection))
    .map((one) => ({
      name: one.collection,
      collection: one.collection,
      database,
      place,
      isThere: true,
      isOfPattern: true,
      ...(database === undefined && { ownDatabase: one.database }),
    }));
}

/** The collections that a pattern names, and that cannot be served: a place for each, and why. Those of MongoDB are no loss. */
export async function leftOutOf(
  { database, matches }: CollectionPattern,
  lists: Lists,
): Promise<readonly { readonly collection: string; readonly reason: string }[]> {
  return ((await lists(database)) ?? []).flatMap(({ collection, refused }) =>
    refused !== undefined && matches(collection) && !collection.startsWith('system.')
      ? [{ collection, reason: refused }]
      : [],
  );
}

/** The collections that the store itself has the declarations of: the embedded store has those of all. */
export async function keptBy(store: Pick<Store, 'name' | 'list'>): Promise<readonly CollectionEntry[]> {
  if (store.name === 'mongodb') return [];
  return (await store.list()).collections;
}

/** A resource of the server itself, whose collection is made where it is missing. `member`: what the operator declares of it. */
export function locatedOwn(own: OwnResource, member: ItemsMember | null = null): LocatedDeclaration {
  const { name, collection } = own.declaration;
  return { ...member, name, collection, place: name, database: undefined, isThere: true, own };
}

/** A resource whose declaration the store keeps. Undefined: it is not served yet. */
export function locatedOf({
  declaration,
  isUnfilled = false,
}: CollectionEntry): LocatedDeclaration | undefined {
  if (!declaration || isUnfilled) return undefined;
  const { name, collection } = declaration;
  return { name, collection, indexes: [], place: name, database: undefined, isThere: true };
}

function has(found: readonly CollectionEntry[], collection: string): boolean {
  return found.some((one) => one.collection === collection && !one.isUnfilled);
}
