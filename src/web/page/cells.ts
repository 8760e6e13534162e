/** How values read in a table: numbers and dates in the form of the browser's language, nested values in short. */
import { getOrMake } from '../../base/get-or-make.ts';
import { isList, isMembers, isNumber, textOf, type Json } from './json.ts';

export type Kind = 'number' | 'date' | 'truth' | 'nested' | 'text';

/** A date as the server writes it. */
const DATE = /^-?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const LONGEST = 300;

const inDays = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const inSeconds = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export function kindOf(value: Json | undefined): Kind | null {
  if (value === undefined || value === null) return null;
  if (isNumber(value)) return 'number';
  if (typeof value === 'boolean') return 'truth';
  if (typeof value === 'object') return 'nested';
  return DATE.test(value) ? 'date' : 'text';
}

/** A value in one line. `isKey`: a number that names a row is not grouped in thousands. */
export function shown(value: Json | undefined, isKey = false): string {
  if (value === undefined) return '';
  if (value === null) return '\u2013';
  if (isNumber(value)) return isKey ? textOf(value) : inDigits(textOf(value));
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (isList(value) || isMembers(value)) return inShort(value);
  if (DATE.test(value)) return dateText(value);
  return value.length > LONGEST ? `${value.slice(0, LONGEST)}\u2026` : value;
}

/** A date and time where the reader is. Midnight in UTC is shown as the day that it stands for. */
export function dateText(text: string): string {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return text;
  if (!text.endsWith('T00:00:00.000Z')) return inSeconds.format(date);
  return inDays.format(new Date(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()));
}

/** Formats of numbers, by the digits behind the point. */
const inGroups = new Map<number, Intl.NumberFormat>();

/** All digits of a number, in groups. One with an exponent stays as it is. */
function inDigits(text: string): string {
  if (/e/i.test(text)) return text;
  const { length } = text.split('.')[1] ?? '';
  const options = { minimumFractionDigits: length, maximumFractionDigits: length };
  return getOrMake(inGroups, length, () => new Intl.NumberFormat(undefined, options)).format(
    text as `${number}`,
  );
}

/** `{country: NL, card: 7}` or `[1, 2, 3 more]`. */
function inShort(value: Json): string {
  if (!isList(value) && !isMembers(value)) {
    const text = textOf(value);
    return text.length > 40 ? `${text.slice(0, 40)}\u2026` : text;
  }
  const all = isList(value)
    ? value.map(inShort)
    : Object.entries(value).map(([name, one]) => `${name}: ${inShort(one)}`);
  const few = [...all.slice(0, 3), ...(all.length > 3 ? [`${all.length - 3} more`] : [])].join(', ');
  return isList(value) ? `[${few}]` : `{${few}}`;
}

/** What stands before the fraction of a number in the browser's language. */
const POINT = (1.5).toLocaleString().slice(1, 2);

/** The digits behind the point in the text of a number. */
export function fractionOf(text: string): number {
  const [, fraction = ''] = text.split(POINT);
  return fraction.length;
}

/** Pads a number with spaces as wide as digits, so that the points of a column stand below each other. */
export function aligned(text: string, fraction: number): string {
  const own = fractionOf(text);
  if (fraction === 0 || own >= fraction) return text;
  return text + (own === 0 ? '\u2008' : '') + '\u2007'.repeat(fraction - own);
}
