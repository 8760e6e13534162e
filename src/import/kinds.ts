import { Decimal128, Long, ObjectId, UUID } from '../store/bson.ts';
import { shownValue, toDecimal128 } from '../store/decimal.ts';
import { quoted } from '../terminal/text.ts';
import { exactDate } from '../input/dates.ts';
import type { DocumentWriter } from './document-writer.ts';
import { JsonReader } from './json-reader.ts';
import { decimalOf, priceOfCell, withDecimalPoint } from './numbers.ts';
import { BadRow, NotJson } from './row.ts';

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

/** Writes a text that was declared to be of a kind as an element: see valueOfText. */
export function writeText(
  writer: DocumentWriter,
  name: Uint8Array,
  text: string,
  kind: Kind,
  hasDecimalComma: boolean,
): void {
  if (kind === 'json') writeJson(writer, name, text);
  else writer.value(name, valueOfText(text, kind, hasDecimalComma));
}

/** Writes the JSON value that a text states as an element. Throws BadRow. */
function writeJson(writer: DocumentWriter, name: Uint8Array, text: string): void {
  const reader = new JsonReader(writer);
  try {
    reader.begin(Buffer.from(text));
    reader.value(name, { inner: null }, 2, null);
    reader.end();
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    throw new BadRow(`${quoted(text)} is not valid JSON ${error.message}`);
  }
}

/**
 * The value of a text that was declared to be of a kind. `hasDecimalComma`: its numbers are written as 1.234,56. Throws
 * BadRow when the text is none of that kind, or when the value could not keep all of it.
 */
export function valueOfText(text: string, kind: Exclude<Kind, 'json'>, hasDecimalComma: boolean): unknown {
  const trimmed = text.trim();
  switch (kind) {
    case 'string':
      return text;
    case 'number':
      return priceOfCell(pointed(text, hasDecimalComma)) ?? refuse(text, 'is not a number');
    case 'decimal':
      return decimalOf(pointed(text, hasDecimalComma)) ?? refuse(text, 'is not a number');
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
  }
}

/**
 * The value of a JSON field, which is no string, as the kind that was declared for it. A value of that kind stays. Throws
 * BadRow for any other value.
 */
export function fittingValue(value: unknown, kind: Kind): unknown {
  if (value === null || kind === 'json') return value;
  const fitting = CONVERSIONS[kind](value);
  if (fitting !== undefined) return fitting;
  throw new BadRow(`the value is not a ${kind}, and not a string that states one`);
}

/** The values that may become each kind. undefined: this value may not. */
const CONVERSIONS: Readonly<Record<Exclude<Kind, 'json'>, (value: unknown) => unknown>> = {
  // An integer has one text. A fraction has several (1.5, 1.50), and it is no longer known which one it was.
  string: (value) =>
    typeof value === 'string' || Number.isSafeInteger(value) || value instanceof Long
      ? String(value)
      : undefined,
  number: (value) =>
    typeof value === 'number' || value instanceof Long || value instanceof Decimal128 ? value : undefined,
  decimal: (value) => {
    if (typeof value === 'number') return toDecimal128(shownValue(value));
    return value instanceof Long ? Decimal128.fromString(String(value)) : asA(Decimal128, value);
  },
  date: (value) => asA(Date, value),
  'date-utc': (value) => asA(Date, value),
  boolean: (value) => (typeof value === 'boolean' ? value : undefined),
  objectid: (value) => asA(ObjectId, value),
  uuid: (value) => asA(UUID, value),
};

function asA(type: new (...args: never[]) => unknown, value: unknown): unknown {
  return value instanceof type ? value : undefined;
}

function pointed(text: string, hasDecimalComma: boolean): string {
  if (!hasDecimalComma) return text;
  return withDecimalPoint(text) ?? refuse(text, 'is not a number as 1.234,56 or 1234,56');
}

function refuse(text: string, reason: string): never {
  throw new BadRow(`${quoted(text)} ${reason}`);
}
