/** The maximum number of levels of objects and arrays in an item. The item itself is the first level. */
export const MAX_DEPTH = 32;

const LONE_SURROGATE = /\p{Surrogate}/u;

/** The reason why an item may not have a field of this name. null when it may. */
export function nameFault(name: string): string | null {
  if (name.startsWith('$')) return 'begins with $';
  if (name.includes('\0')) return 'contains a NUL character';
  if (name === '__proto__') return 'is not allowed';
  return LONE_SURROGATE.test(name) ? 'is not valid Unicode' : null;
}

/** The names that lead from a document to a nested field, the outermost first. */
export type Path = readonly string[];

/**
 * The path that a name stands for: `customer.country` is the field `country` of `customer`. A name whose dots do not
 * separate names stays one name: `No.`, `.5`, `e.g. this`.
 */
export function pathOf(name: string): Path {
  const parts = name.split('.');
  return parts.every((part) => part !== '' && part.trim() === part) ? parts : [name];
}

/** The columns of CSV, or top-level fields of JSON rows, that become these fields of the item, in place of any other value. */
export interface Columns {
  /** null, and `price` too: the rows of a resource, whose columns keep their names. */
  readonly category: string | null;
  readonly price: string | null;
  /** null: `_id`, else `id`, else a new ObjectId. When it is named, every row must have it. */
  readonly id: string | null;
}

/** Returns what gives the field of a column, by the path of its name. null: another column takes its place. */
export function fieldNames(
  { category, price, id }: Columns,
  idColumn: string | null,
): (name: string, path: Path) => Path | null {
  const mapped = new Map([
    [idColumn, '_id'],
    [category, 'category'],
    [price, 'price'],
  ]);
  const ofItems = ['category', 'price', ...(id === null || id === '_id' ? [] : ['id'])];
  const taken = ['_id', ...(price === null ? [] : ofItems)];
  return (name, path) => {
    const field = mapped.get(name);
    if (field !== undefined) return [field];
    return taken.includes(path[0] ?? '') ? null : path;
  };
}
