import { KEY } from '../store/bookmark.ts';
import type { Index } from '../store/indexes.ts';
import type { Declaration } from '../store/store.ts';
import { ITEM_COLLECTION } from './item-collection.ts';
import { ITEM_FORM, ITEM_KINDS } from './items.ts';
import type { Form } from './query/form.ts';
import type { IdType, Kind } from './query/kinds.ts';

/** A resource that the server declares by itself. */
export interface OwnResource {
  readonly declaration: Declaration;
  readonly form: Form;
  readonly kinds: ReadonlyMap<string, Kind>;
  readonly idType?: IdType | undefined;
}

/** The items. `idType`: see Resource. */
export function itemsOf(idType: IdType | undefined): OwnResource {
  return { declaration: ITEM_COLLECTION, form: ITEM_FORM, kinds: ITEM_KINDS, idType };
}

/** The indexes of a declaration, as stores make them. */
export function declaredIndexes({ indexes }: Declaration): readonly Index[] {
  return indexes.map((paths) => {
    const keys = [...paths, KEY].map((path) => ({ path, sign: 1 as const }));
    return { name: keys.map(({ path }) => `${path}_1`).join('_'), keys, isUnique: false };
  });
}
