import type { FieldKinds } from '../resources/query/kind-table.ts';
import { BSON_TYPE } from '../store/bson-types.ts';
import { UsageError } from '../terminal/arguments.ts';
import { counted, printable, quoted, shellWord } from '../terminal/text.ts';
import type { Column, Guess } from './column.ts';
import { canRead, type Kind } from './kinds.ts';
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
    table.map(async (column) => {
      const { guess, targets } = column;
      const [path = []] = targets.map((target) => target.path);
      const isNested = path.length > 1 || !path[0]?.includes('.'); // a name with a dot cannot be looked for
      if (!guess || guess.kind === 'empty' || !isNested) return column;
      const stored = await kindsAt(path.join('.'));
      const kind = kindAmong(stored, guess, notation);
      if (kind === null) throw misfit(column.name, guess, [...stored]);
      return kind === undefined ? column : { ...column, declared: kind, guess: null, isAsStored: true };
    }),
  );
}

/** The kind that a column has to be read as. Undefined: as its cells are. Null: the cells are of none of these kinds. */
function kindAmong(stored: ReadonlySet<Kind>, guess: Guess, notation: Notation): Kind | undefined | null {
  const { kind, because } = guess;
  if (stored.size === 0 || stored.has(kind as Kind)) return undefined;
  if (stored.has('decimal') && kind === 'number') return 'decimal';
  if (stored.has('string')) return 'string';
  // 01234 is no number, although --type can make it one.
  const others = [...stored].filter((one) => one !== 'number' && one !== 'decimal');
  return others.find((one) => because && canRead(one, because.cell, notation)) ?? null;
}

function misfit(name: string, { kind, because }: Guess, stored: readonly Kind[]): UsageError {
  const found = because ? `${quoted(because.cell)} on line ${counted(because.line)}` : `a ${kind}`;
  const option = (one: Kind) => `--type ${shellWord(printable(`${name}=${one}`))}`;
  return new UsageError(
    `the column ${quoted(name)} has ${found}, and its field in the resource is ${stored.join(' and ')}: ` +
      `${stored.map(option).join(' or ')} refuses the rows that have no such value, ${option('string')} stores texts beside`,
  );
}
