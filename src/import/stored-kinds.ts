import type { FieldKinds } from '../resources/query/kind-table.ts';
import { BSON_TYPE } from '../store/bson-types.ts';
import type { Column } from './column.ts';
import { nameOfKind, type CellKind, type Kind } from './kinds.ts';

/** The kinds that the values of a field have, or are declared to have. Empty: rows have no values there so far. */
export type KindsAt = (path: string) => Promise<ReadonlySet<Kind>>;

/** The kinds of columns for the values that were found. Numbers that are all decimals stay decimals. */
export function columnKinds({ kinds, sampled }: FieldKinds): ReadonlySet<Kind> {
  const numbers = [BSON_TYPE.int32, BSON_TYPE.int64, BSON_TYPE.double];
  const areDecimals = sampled.has(BSON_TYPE.decimal128) && !numbers.some((type) => sampled.has(type));
  return new Set([...kinds].map((kind) => (kind === 'number' && areDecimals ? 'decimal' : kind)));
}

/**
 * The columns, of which those without a declared kind are read as the one that their fields have in the resource, so that
 * a later file does not change it. A cell of another kind makes its row bad.
 */
export function readAsStored(table: readonly Column[], kindsAt: KindsAt): Promise<readonly Column[]> {
  return Promise.all(
    table.map(async (column): Promise<Column> => {
      const { path, kind, fits, because } = column;
      const isGuessed = fits.length > 0 || because !== undefined;
      const isNested = path && (path.length > 1 || !path[0]?.includes('.')); // a name with a dot cannot be looked for
      if (!isGuessed || !isNested || kind === undefined) return column;
      const stored = await kindsAt(path.join('.'));
      const own = nameOfKind(kind);
      if (stored.size === 0 || stored.has(own)) return column;
      return { ...column, kind: kindAmong(stored, own), fits: [], isAsStored: true };
    }),
  );
}

/** The kind that a column of another kind is read as. Numbers are those that JSON writes, so 01234 is none. */
function kindAmong(stored: ReadonlySet<Kind>, own: Kind): CellKind {
  if (stored.has('decimal') && own === 'number') return 'decimal';
  const [kind = 'string'] = stored.has('string') ? [] : stored;
  return kind === 'number' ? 'plain number' : kind;
}
