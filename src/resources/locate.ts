import type { Found, Store } from '../store/store.ts';
import type { Declared } from './declarations.ts';

/** A declaration with the collection that it means. */
export interface Located extends Declared {
  readonly name: string;
  /** Undefined: the store's own. */
  readonly database: string | undefined;
  /**
   * The declaration as it was given, while it is not known which collection it means: the store is away. `name` is then
   * the likely one.
   */
  readonly unsure?: Declared;
}

/**
 * A name with dots is a collection of the store's own database first, else DATABASE.COLLECTION. `own`: the collections
 * of the store's own database, null while the store is away. Resolves with a fault when a name means two collections.
 */
export async function locate(
  declared: Declared,
  own: readonly Found[] | null,
  store: Pick<Store, 'list'>,
): Promise<Located | string> {
  const { collection, name, place } = declared;
  const dot = collection.indexOf('.');
  if (dot <= 0) return { ...declared, name: name ?? collection, database: undefined };
  const [database, rest] = [collection.slice(0, dot), collection.slice(dot + 1)];
  if (!own) return { ...declared, name: name ?? rest, database: undefined, unsure: declared };
  const isOwn = own.some((one) => one.collection === collection);
  const others = await store.list(database);
  const isOther = others.some((one) => one.collection === rest);
  if (isOwn && isOther)
    return `${place}: ${collection} is a collection of the database of MONGODB_URI, and ${rest} is one of the database ${database}; name one of them otherwise`;
  if (isOwn || !isOther) return { ...declared, name: name ?? collection, database: undefined };
  return { ...declared, name: name ?? rest, collection: rest, database };
}
