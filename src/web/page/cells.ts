/** How values read in a table: numbers and dates in the form of the browser's language, nested values in short. */
import { Digits, isList, isMembers, textOf, type Json } from './json.ts';

export type Kind = 'number' | 'date' | 'truth' | 'nested' | 'text';

/** A date as the server writes it. */
const DATE = /^-?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const LONGEST = 300;

const inDays = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const inSeconds = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export function kindOf(value: Json | undefined): Kind | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' || value instanceof Digits) return 'number';
  if (typeof value === 'boolean') return 'truth';
  if (typeof value === 'object') return 'nested';
  return DATE.test(value) ? 'date' : 'text';
}

/** A value in one line. `isKey`: a number that names a row is not grouped in thousands. */
export function shown(value: Json | undefined, isKey = false): string {
  if (value === undefined) return '';
  if (value === null) return '\u2013';
  if (typeof value === 'number') return isKey ? String(value) : numberText(value);
  if (value instanceof Digits) return isKey ? value.text : groupedDigits(value.text);
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

function numberText(value: number): string {
  return Math.abs(value) >= 1e21
    ? String(value)
    : value.toLocaleString(undefined, { maximumFractionDigits: 20 });
}

/** Groups digits that a JavaScript number would round. */
function groupedDigits(text: string): string {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d+)(\.\d+)?$/.exec(text) ?? [];
  if (whole === '') return text;
  return `${sign}${BigInt(whole).toLocaleString()}${fraction}`;
}

/** `{country: NL, card: 7}` or `[1, 2, 3 more]`. */
function inShort(value: Json): string {
  if (isList(value)) {
    const first = value.slice(0, 3).map(inShort);
    return `[${[...first, ...(value.length > 3 ? [`${value.length - 3} more`] : [])].join(', ')}]`;
  }
  if (isMembers(value)) {
    const members = Object.entries(value);
    const first = members.slice(0, 3).map(([name, one]) => `${name}: ${inShort(one)}`);
    return `{${[...first, ...(members.length > 3 ? [`${members.length - 3} more`] : [])].join(', ')}}`;
  }
  const text = textOf(value);
  return text.length > 40 ? `${text.slice(0, 40)}\u2026` : text;
}

/** The digits behind the point in the text of a number. */
export function fractionOf(text: string): number {
  return /[.,](\d+)$/.exec(pointed(text))?.[1]?.length ?? 0;
}

/** Pads a number with spaces as wide as digits, so that the points of a column stand below each other. */
export function aligned(text: string, fraction: number): string {
  const own = fractionOf(text);
  if (fraction === 0 || own >= fraction) return text;
  return text + (own === 0 ? '\u2008' : '') + '\u2007'.repeat(fraction - own);
}

/** What stands before the decimal point in the browser's language, and the point itself. */
const POINT = (1.5).toLocaleString().slice(1, 2);

/** The text with its fraction alone behind a point, since a comma can group thousands. */
function pointed(text: string): string {
  const at = text.lastIndexOf(POINT);
  return at === -1 ? '' : `.${text.slice(at + 1)}`;
}
