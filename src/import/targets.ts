import { pathOf, type Path } from './names.ts';

/**
 * Which columns (of a CSV) or top-level fields (of a JSON row) become which fields of the item. A mapped
 * column is not kept under its own name as well. It replaces any other value that the row has under the
 * field's name.
 */
export interface Columns {
  /** null, and `price` too: the rows of a resource, whose columns keep their names. */
  readonly category: string | null;
  readonly price: string | null;
  /**
   * The column of the id. null: `_id`, else `id`, else a new ObjectId. When it is named, every row must have
   * it.
   */
  readonly id: string | null;
}

/** A field that a column becomes, and the rule for its values. `field` is one without rules of its own. */
export interface Target {
  readonly role: 'id' | 'category' | 'price' | 'field';
  readonly path: Path;
}

/** The fields that a column becomes. `isFlat`: dots in its name do not separate names. Empty: another column takes its place. */
export function targetsOf(
  name: string,
  idColumn: string | null,
  columns: Columns,
  isFlat: boolean,
): readonly Target[] {
  const targets: Target[] = [];
  if (name === idColumn) targets.push({ role: 'id', path: ['_id'] });
  if (name === columns.category) targets.push({ role: 'category', path: ['category'] });
  if (name === columns.price) targets.push({ role: 'price', path: ['price'] });
  const path = isFlat ? [name] : pathOf(name);
  if (targets.length === 0 && !isTaken(path[0], columns)) targets.push({ role: 'field', path });
  return targets;
}

/** Whether a mapped column took the name of a field, or that of the document that the field would be in. */
function isTaken(outer: string | undefined, { price, id }: Columns): boolean {
  if (outer === '_id') return true;
  if (price === null) return false;
  return outer === 'category' || outer === 'price' || (outer === 'id' && id !== null && id !== '_id');
}
