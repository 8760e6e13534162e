import { keyOf, type Bookmark } from '../../bookmark.ts';
import { BSON } from '../../bson.ts';
import { comparePlaces } from '../../order.ts';
import type { Equality } from '../../store.ts';

/** Tells whether a row, of which the paths of these values are known, had the values. */
export function insideOf(where: readonly Equality[]): (row: Uint8Array) => boolean {
  const wanted = where.map(({ path, value }) => ({
    names: path.split('.'),
    key: bookmarkWith(value ?? null),
  }));
  return (row) => {
    const fields = keyOf(row as Bookmark);
    return wanted.every(({ names, key }) => {
      const value = valueAt(fields, names);
      return !Array.isArray(value) && comparePlaces(bookmarkWith(value ?? null), key) === 0;
    });
  };
}

/** The value at a path: undefined where there is none. An array on the way is the value: no part has rows with one. */
function valueAt(fields: unknown, names: readonly string[]): unknown {
  let value = fields;
  for (const name of names) {
    if (Array.isArray(value)) return value;
    if (value instanceof Map) value = value.get(name);
    else if (isFields(value)) value = Object.hasOwn(value, name) ? value[name] : undefined;
    else return undefined;
  }
  return value;
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !('_bsontype' in value);
}

function bookmarkWith(value: unknown): Bookmark {
  return BSON.serialize({ _id: value }) as Bookmark;
}
