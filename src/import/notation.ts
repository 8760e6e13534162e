import { exactDate } from '../input/dates.ts';
import { UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';
import type { NumberNotation } from './number-notation.ts';

/** How the cells of a CSV file are written, where the command says so. */
export interface Notation {
  /** The form of numbers. Absent: as programs write them. */
  readonly numbers?: NumberNotation;
  /** The forms of dates. Absent: those of ISO 8601. */
  readonly dates?: readonly DateForm[];
  /** The words for true and false in lower case, which make booleans of columns that have no others. */
  readonly booleans?: ReadonlyMap<string, boolean>;
}

/** A form of dates, in the tokens of strptime. */
interface DateForm {
  readonly text: string;
  /** The date that a cell states, in UTC without a zone. Otherwise the reason why it states none. */
  read(cell: string): Date | string;
}

const TOKENS: Readonly<Record<string, string>> = {
  Y: String.raw`(\d{4})`,
  y: String.raw`(\d\d)`,
  f: String.raw`(\d{1,9})`,
  ...Object.fromEntries(['m', 'd', 'H', 'M', 'S'].map((token) => [token, String.raw`(\d\d?)`])),
  z: String.raw`(Z|[+-]\d\d:?\d\d)`,
};

/** Reads a form such as `%d.%m.%Y %H:%M`. Throws UsageError when it does not state a day. */
export function dateFormOf(text: string): DateForm {
  const names: string[] = [];
  const pattern = text.replace(/%(.?)|[^\w\s]/gs, (piece, name?: string) => {
    if (name === undefined || name === '%') return `\\${name ?? piece}`;
    names.push(name);
    return TOKENS[name] ?? '';
  });
  const isKnown = names.every((name, n) => TOKENS[name] !== undefined && names.indexOf(name) === n);
  const hasDay =
    ['d', 'm'].every((name) => names.includes(name)) && names.includes('Y') !== names.includes('y');
  if (!isKnown || !hasDay)
    throw new UsageError(
      `--date-format takes %Y or %y, %m and %d, and perhaps %H %M %S %f %z, such as %d.%m.%Y; got ${quoted(text)}`,
    );
  const form = new RegExp(`^${pattern}$`, 'i');
  return {
    text,
    read(cell) {
      const found = form.exec(cell.trim());
      if (!found) return `is not a date as ${text}`;
      const part = (name: string, otherwise = '0') =>
        found[names.indexOf(name) + 1 || found.length] ?? otherwise;
      const two = (name: string) => part(name).padStart(2, '0');
      const year = part('Y', `${Number(part('y')) < 69 ? 20 : 19}${two('y')}`); // as POSIX has it
      const time = `${two('H')}:${two('M')}:${two('S')}.${part('f')}${part('z', 'Z')}`;
      return exactDate(`${year}-${two('m')}-${two('d')}T${time}`, true);
    },
  };
}

/** Reads pairs of words such as `yes/no`. Throws UsageError for others. */
export function booleansOf(texts: readonly string[]): ReadonlyMap<string, boolean> {
  return new Map(
    texts.flatMap((text) => {
      const [yes = '', no = '', ...more] = text.toLowerCase().split('/');
      if (yes === '' || no === '' || yes === no || more.length > 0)
        throw new UsageError(
          `--booleans takes the words for true and false, such as yes/no; got ${quoted(text)}`,
        );
      return [[yes, true] as const, [no, false] as const];
    }),
  );
}

/** The boolean that a cell states in the words of the notation. */
export function booleanOf(cell: string, { booleans }: Notation): boolean | undefined {
  return booleans?.get(cell.trim().toLowerCase());
}

/** The date that a cell states, or the reason why it states none. `isUtc`: its time needs no zone. */
export function dateOfCell(cell: string, isUtc: boolean, { dates = [] }: Notation): Date | string {
  const read = dates.map((form) => form.read(cell));
  return read.find((date) => date instanceof Date) ?? read[0] ?? exactDate(cell.trim(), isUtc);
}
