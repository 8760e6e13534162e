import type { FieldKinds } from '../resources/query/kind-table.ts';
import { BSON_TYPE } from '../store/bson-types.ts';
import { UsageError } from '../terminal/arguments.ts';
import { counted, printable, quoted, shellWord } from '../terminal/text.ts';
import type { Column } from './column.ts';
import { canRead, nameOfKind, type Kind } from './kinds.ts';
import type { Notation } from './notation.ts';

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
 * a later file does not change it. Rejects with UsageError where their cells are of another kind.
 */
export function readAsStored(
  table: readonly Column[],
  kindsAt: KindsAt,
  notation: Notation,
): Promise<readonly Column[]> {
  return Promise.all(
    table.map(async (column): Promise<Column> => {
      const { name, path, kind, fits, because } = column;
      const isGuessed = fits.length > 0 || because !== undefined;
      const isNested = path && (path.length > 1 || !path[0]?.includes('.')); // a name with a dot cannot be looked for
      if (!isGuessed || !isNested || kind === undefined) return column;
      const stored = await kindsAt(path.join('.'));
      const own = nameOfKind(kind);
      if (stored.size === 0 || stored.has(own)) return column;
      const found = kindAmong(stored, own, because?.cell, notation);
      if (found !== undefined) return { ...column, kind: found, fits: [], isAsStored: true };
      const cell = because ? `${quoted(because.cell)} on line ${counted(because.line)}` : `a ${own}`;
      const option = (one: Kind) => `--type ${shellWord(printable(`${name}=${one}`))}`;
      throw new UsageError(
        `the column ${quoted(name)} has ${cell}, and its field in the resource is ${[...stored].join(' and ')}: ` +
          `${[...stored].map(option).join(' or ')} refuses the rows that have no such value, ${option('string')} stores texts beside`,
      );
    }),
  );
}

/** The kind that a column of another kind has to be read as. Undefined: its cells are of none of these kinds. */
function kindAmong(
  stored: ReadonlySet<Kind>,
  own: Kind,
  cell: string | undefined,
  notation: Notation,
): Kind | undefined {
  if (stored.has('decimal') && own === 'number') return 'decimal';
  if (stored.has('string')) return 'string';
  // 01234 is no number, although --type can make it one.
  const others = [...stored].filter((one) => one !== 'number' && one !== 'decimal');
  return others.find((one) => cell !== undefined && canRead(one, cell, notation));
}
