import { momentOf } from '../../input/dates.ts';
import type { ColumnKind, DeclaredKinds } from '../../rows/arrow/columns.ts';
import { KEY } from '../../store/bookmark.ts';
import { Double } from '../../store/values/bson.ts';
import { compareDecimals, exactValue, parseDecimal, shownValue } from '../../store/values/decimal.ts';
import { decimalOf, integerOf, JSON_NUMBER, objectIdOf, uuidOf } from '../../store/values/value-texts.ts';
import type { Selection } from '../../rows/selection.ts';

/** The kinds that fields can be declared as. To a text in a query, a decimal is a number. */
export const KINDS = ['string', 'number', 'decimal', 'objectid', 'date', 'uuid', 'boolean'] as const;
export type Kind = (typeof KINDS)[number];

/** The kinds that a text without a prefix can be read as. */
export type TextKind = Exclude<Kind, 'decimal'>;

export function asTextKind(kind: Kind): TextKind {
  return kind === 'decimal' ? 'number' : kind;
}

/** The columns of declared kinds. A number may have a fraction. */
const COLUMNS: Readonly<Record<Kind, ColumnKind>> = {
  string: 'text',
  number: 'double',
  decimal: 'decimal',
  objectid: 'objectId',
  date: 'date',
  uuid: 'uuid',
  boolean: 'boolean',
};

interface FieldKindsSource {
  readonly form: { readonly closed?: unknown };
  readonly kinds: ReadonlyMap<string, Kind>;
  readonly shown: Selection;
}

/** The columns of Arrow of declared kinds. `id` and `_id` mean the key. A hidden field has none, as an unknown one. */
export function columnKinds({ form, kinds, shown }: FieldKindsSource): DeclaredKinds | undefined {
  if (form.closed) return undefined;
  const open = [...kinds].filter(([path]) => shown.leavesWhole(path));
  return new Map(open.map(([path, kind]) => [path === 'id' ? KEY : path, COLUMNS[kind]]));
}

/** The types that ID_TYPE can name, each with the prefix that asks for it in a query. */
export const ID_TYPES = { objectid: 'oid', integer: 'int', uuid: 'uuid', string: 'str' } as const;
export type IdType = keyof typeof ID_TYPES;

/** A value that a text stands for. */
export interface Reading {
  readonly kind: TextKind | 'null';
  /** As a BSON class, so that the value keeps its type and precision in a command. */
  readonly value: unknown;
  /** The text with the prefix that fixes this reading. */
  readonly spelling: string;
  /** The text is a moment just before the value, and between two values. */
  readonly isBetween?: true;
  /** The text has more digits than any value: the value is near to it, and a bound alone. */
  readonly isNear?: true;
}

type ReadValue = Pick<Reading, 'value' | 'isBetween'>;

interface Prefix {
  readonly kind: Reading['kind'];
  readonly expected: string;
  readonly read: (text: string) => ReadValue | null;
}

/** How each prefix reads the text behind it. Null: the text is not of this kind. `expected`: for messages. */
const PREFIXES: ReadonlyMap<string, Prefix> = new Map<string, Prefix>([
  ['str', { kind: 'string', expected: 'a text', read: (value) => ({ value }) }],
  ['int', { kind: 'number', expected: 'a whole number of at most 64 bits', read: readBy(integerOf) }],
  ['num', { kind: 'number', expected: 'a number as JSON writes it, that a double can show', read: number }],
  ['dec', { kind: 'number', expected: 'a number that a Decimal128 holds exactly', read: readBy(decimalOf) }],
  ['oid', { kind: 'objectid', expected: '24 hexadecimal digits', read: readBy(objectIdOf) }],
  ['date', { kind: 'date', expected: 'a date and time as in 2026-01-31T12:00:00Z', read: date }],
  ['uuid', { kind: 'uuid', expected: 'a UUID', read: readBy(uuidOf) }],
  ['bool', { kind: 'boolean', expected: 'true or false', read: boolean }],
  ['null', { kind: 'null', expected: 'nothing behind it', read: (text) => (text === '' ? NULL : null) }],
]);

const NULL: ReadValue = { value: null };

/** A text whose prefix names a kind that the rest is not of. */
interface Misfit {
  readonly prefix: string;
  readonly expected: string;
}

/**
 * All values that a text can stand for, the likeliest first; with a prefix (`int:`) those of its kind, or a Misfit. A
 * number has one reading where a double is exact, else all that are shown so: a whole number, a double, a decimal.
 */
export function readingsOf(text: string): readonly Reading[] | Misfit {
  const [, prefix = '', rest = ''] = /^([a-z]+):(.*)$/s.exec(text) ?? [];
  const fixed = PREFIXES.get(prefix);
  if (!fixed) return plainReadings(text);
  const { kind, expected, read } = fixed;
  const found = read(rest);
  return found ? [{ ...found, kind, spelling: text }] : { prefix, expected };
}

/** All values that are shown as a text, the likeliest first. */
export function plainReadings(text: string): readonly Reading[] {
  return [...numbersOf(text), ...OTHERS.flatMap((prefix) => readingsWith(prefix, text))];
}

const OTHERS = ['oid', 'uuid', 'date', 'bool', 'str'];

/** The value that is shown as a text and that a prefix asks for. Empty: there is none. */
export function readingsWith(prefix: string, text: string): readonly Reading[] {
  const fixed = PREFIXES.get(prefix);
  if (!fixed) throw new TypeError(`no prefix is called ${prefix}`);
  const found = fixed.read(text);
  return found ? [{ ...found, kind: fixed.kind, spelling: `${prefix}:${text}` }] : [];
}

export function isMisfit(read: readonly Reading[] | Misfit): read is Misfit {
  return 'prefix' in read;
}

/** The readings of a text as a number: where no double is exactly the number, all that are shown with its value. */
function numbersOf(text: string): readonly Reading[] {
  if (!JSON_NUMBER.test(text)) return [];
  const asked = parseDecimal(text, { exact: true });
  const double = readingsWith('num', text);
  if (!asked) return double.map((one) => ({ ...one, isNear: true }));
  const nearest = Number(text);
  const isShown = Number.isFinite(nearest) && compareDecimals(shownValue(nearest), asked) === 0;
  const isExact = isShown && compareDecimals(exactValue(nearest), asked) === 0;
  const whole = readingsWith('int', text);
  if (whole.length > 0) return isShown && !isExact ? [...whole, ...double] : whole;
  return [...(isShown ? double : []), ...(isExact ? [] : readingsWith('dec', text))];
}

/** Reads the one value that a text stands for. */
function readBy(valueOf: (text: string) => unknown): Prefix['read'] {
  return (text) => {
    const value = valueOf(text);
    return value === null ? null : { value };
  };
}

/** Beyond 2^53 a double is shown with digits that are not its exact value: 2^60 as 1152921504606847000. */
function number(text: string): ReadValue | null {
  if (!JSON_NUMBER.test(text)) return null;
  const double = Number(text);
  const whole = integerOf(text);
  const isShown = !Number.isSafeInteger(double) && String(double) === text;
  if (whole && !isShown) return { value: whole };
  return Number.isFinite(double) ? { value: new Double(double) } : null;
}

/** A time without a zone is UTC, as in the rows that this server writes. */
function date(text: string): ReadValue | null {
  const moment = momentOf(text, true);
  if (typeof moment === 'string') return null;
  return { value: moment.date, ...(moment.isBetween && { isBetween: true }) };
}

function boolean(text: string): ReadValue | null {
  return text === 'true' || text === 'false' ? { value: text === 'true' } : null;
}
