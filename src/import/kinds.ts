import { Decimal128, Double, Int32, Long, ObjectId, UUID } from '../store/bson.ts';
import { shownValue, toDecimal128 } from '../store/decimal.ts';
import { quoted } from '../terminal/text.ts';
import { exactDate } from '../input/dates.ts';
import { parseLine } from './ndjson.ts';
import { decimalOf, priceOfCell, TooManyDigits, withDecimalPoint } from './numbers.ts';
import { BadRow } from './row.ts';
import { storedValue, tooManyDigits } from './values.ts';

/** What a column or a field can be declared as. `date-utc` is a date whose times need no zone. */
export const KINDS = [
  'string',
  'number',
  'decimal',
  'date',
  'date-utc',
  'boolean',
  'objectid',
  'uuid',
  'json',
] as const;
export type Kind = (typeof KINDS)[number];

/** Declared kinds by the name of a column, or by the path of a JSON field. */
export type Types = ReadonlyMap<string, Kind>;

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['true', 't', 'yes', 'y', '1'].map((text) => [text, true] as const),
  ...['false', 'f', 'no', 'n', '0'].map((text) => [text, false] as const),
]);
const UUID_FORM = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/**
 * The value of a text that was declared to be of a kind. `hasDecimalComma`: its numbers are written as 1.234,56. Throws
 * BadRow when the text is none of that kind, or when the value could not keep all of it.
 */
export function valueOfText(text: string, kind: Kind, hasDecimalComma: boolean): unknown {
  const trimmed = text.trim();
  switch (kind) {
    case 'string':
      return text;
    case 'number':
      return numberOfText(text, hasDecimalComma);
    case 'decimal':
      return exactly(text, decimalOf(pointed(text, hasDecimalComma)) ?? refuse(text, 'is not a number'));
    case 'date':
    case 'date-utc': {
      const date = exactDate(trimmed, kind === 'date-utc');
      return typeof date === 'string' ? refuse(text, date) : date;
    }
    case 'boolean':
      return BOOLEANS.get(trimmed.toLowerCase()) ?? refuse(text, 'is not true or false');
    case 'objectid':
      return /^[0-9a-f]{24}$/i.test(trimmed)
        ? new ObjectId(trimmed)
        : refuse(text, 'is not an ObjectId of 24 hexadecimal digits');
    case 'uuid':
      return UUID_FORM.test(trimmed) ? new UUID(trimmed) : refuse(text, 'is not a UUID');
    case 'json':
      return jsonOfText(text);
  }
}

/**
 * The value of a JSON field that was declared to be of a kind. A string is read as that kind. A value of that kind
 * stays, as null does. Throws BadRow for any other value.
 */
export function valueOfField(value: unknown, kind: Kind): unknown {
  if (typeof value === 'string') return valueOfText(value, kind, false);
  if (value === null || kind === 'json') return value;
  const fitting = CONVERSIONS[kind](value);
  if (fitting !== undefined) return fitting;
  throw new BadRow(`the value is not a ${kind}, and not a string that states one`);
}

/** The values other than strings that may become each kind. undefined: this value may not. */
const CONVERSIONS: Readonly<Record<Exclude<Kind, 'json'>, (value: unknown) => unknown>> = {
  // An integer has one text. A fraction has several (1.5, 1.50), and it is no longer known which one it was.
  string: (value) => (Number.isSafeInteger(value) || value instanceof Long ? String(value) : undefined),
  number: (value) => (isNumber(value) ? value : undefined),
  decimal: (value) => (typeof value === 'number' ? toDecimal128(shownValue(value)) : decimalOfBson(value)),
  date: (value) => (value instanceof Date ? value : undefined),
  'date-utc': (value) => (value instanceof Date ? value : undefined),
  boolean: (value) => (typeof value === 'boolean' ? value : undefined),
  objectid: (value) => (value instanceof ObjectId ? value : undefined),
  uuid: (value) => (value instanceof UUID ? value : undefined),
};

/** In brackets: the parser looks for numbers with many digits only inside of arrays and objects. */
function jsonOfText(text: string): unknown {
  const [value, ...others] = parseLine(`[${text}]`, quoted(text)) as unknown[];
  if (others.length > 0 || value === undefined) refuse(text, 'is not one JSON value');
  return storedValue(value);
}

function isNumber(value: unknown): boolean {
  const classes = [Int32, Long, Double, Decimal128];
  return typeof value === 'number' || classes.some((one) => value instanceof one);
}

function decimalOfBson(value: unknown): Decimal128 | undefined {
  if (value instanceof Decimal128) return value;
  return value instanceof Long || value instanceof Int32 ? Decimal128.fromString(String(value)) : undefined;
}

function numberOfText(text: string, hasDecimalComma: boolean): unknown {
  return exactly(text, priceOfCell(pointed(text, hasDecimalComma)) ?? refuse(text, 'is not a number'));
}

function pointed(text: string, hasDecimalComma: boolean): string {
  if (!hasDecimalComma) return text;
  return withDecimalPoint(text) ?? refuse(text, 'is not a number as 1.234,56 or 1234,56');
}

function exactly<T>(text: string, value: T | TooManyDigits): T {
  if (value instanceof TooManyDigits) throw tooManyDigits(text);
  return value;
}

function refuse(text: string, reason: string): never {
  throw new BadRow(`${quoted(text)} ${reason}`);
}
