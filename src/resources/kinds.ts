import { exactDate } from '../input/dates.ts';
import type { ColumnKind, DeclaredKinds } from '../rows/arrow/columns.ts';
import { KEY } from '../store/bookmark.ts';
import { Decimal128, Double, Int32, Long, ObjectId, UUID } from '../store/bson.ts';
import { exactValue, compareDecimals, parseDecimal } from '../store/decimal.ts';
import type { Resource } from './resource.ts';

/** The kinds of values that a text in a query can stand for. */
export const KINDS = ['string', 'number', 'decimal', 'objectid', 'date', 'uuid', 'boolean', 'null'] as const;
export type Kind = (typeof KINDS)[number];

/** The columns of declared kinds. A number may have a fraction. */
const COLUMNS: Readonly<Record<Kind, ColumnKind>> = {
  string: 'text',
  number: 'double',
  decimal: 'decimal',
  objectid: 'objectId',
  date: 'date',
  uuid: 'uuid',
  boolean: 'boolean',
  null: 'json',
};

/**
 * The kinds of the columns of Arrow that declared kinds of fields have. `id` and `_id` mean the key. A field that is
 * hidden has none, so that it cannot be told from an unknown one.
 */
export function columnKinds({ kinds, shown }: Pick<Resource, 'kinds' | 'shown'>): DeclaredKinds {
  const open = [...kinds].filter(([path]) => shown.leavesWhole(path));
  return new Map(open.map(([path, kind]) => [path === 'id' ? KEY : path, COLUMNS[kind]]));
}

/** A value that a text stands for. */
export interface Reading {
  readonly kind: Kind;
  /** As a BSON class, so that the value keeps its type and precision in a command. */
  readonly value: unknown;
  /** The text with the prefix that fixes this reading. */
  readonly spelling: string;
}

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const DATE = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/;
const UUID_TEXT = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const OBJECT_ID = /^[0-9a-f]{24}$/i;

/** How each prefix reads the text behind it. Undefined: the text is not of this kind. `expected`: for messages. */
const PREFIXES: Readonly<
  Record<string, { readonly kind: Kind; readonly expected: string; readonly read: (text: string) => unknown }>
> = {
  str: { kind: 'string', expected: 'a text', read: (text) => text },
  int: { kind: 'number', expected: 'a whole number of at most 64 bits', read: integer },
  num: { kind: 'number', expected: 'a number as JSON writes it, that a double can show', read: number },
  dec: { kind: 'decimal', expected: 'a number that a Decimal128 holds exactly', read: decimal },
  oid: { kind: 'objectid', expected: '24 hexadecimal digits', read: objectId },
  date: { kind: 'date', expected: 'a date and time as in 2026-01-31T12:00:00Z', read: date },
  uuid: { kind: 'uuid', expected: 'a UUID', read: uuid },
  bool: { kind: 'boolean', expected: 'true or false', read: boolean },
  null: { kind: 'null', expected: 'nothing behind it', read: (text) => (text === '' ? null : undefined) },
};

/** A text whose prefix names a kind that the rest is not of. */
export interface Misfit {
  readonly prefix: string;
  readonly expected: string;
}

/**
 * All values that a text can stand for, the likeliest first. A prefix (`oid:`, `int:`, ...) leaves one. Of numbers
 * there is one reading where a double has exactly the value, else the double that is shown so and the decimal. Returns
 * a Misfit for a prefix whose text is not of its kind.
 */
export function readingsOf(text: string): readonly Reading[] | Misfit {
  const [, prefix, rest] = /^([a-z]+):(.*)$/s.exec(text) ?? [];
  const fixed = prefix === undefined ? undefined : PREFIXES[prefix];
  if (prefix !== undefined && rest !== undefined && fixed) {
    const value = fixed.read(rest);
    if (value === undefined) return { prefix, expected: fixed.expected };
    return [{ kind: fixed.kind, value, spelling: text }];
  }
  const others: readonly [prefix: string, value: unknown][] = [
    ['oid', objectId(text)],
    ['uuid', uuid(text)],
    ['date', date(text)],
    ['bool', boolean(text)],
  ];
  const numbers = numbersOf(text);
  const read = others.flatMap(([name, value]): Reading[] => {
    const kind = PREFIXES[name]?.kind;
    return value === undefined || !kind ? [] : [{ kind, value, spelling: `${name}:${text}` }];
  });
  return [...numbers, ...read, { kind: 'string', value: text, spelling: `str:${text}` }];
}

/** The reading of a text as one kind, as a declaration says it. Undefined when the text is not of this kind. */
export function readAs(kind: Kind, text: string): Reading | undefined {
  const readings = readingsOf(text);
  return 'prefix' in readings ? undefined : readings.find((reading) => reading.kind === kind);
}

export function isMisfit(read: readonly Reading[] | Misfit): read is Misfit {
  return 'prefix' in read;
}

/** The readings of a text as a number: the double and, where that is not exactly the number, the decimal. */
function numbersOf(text: string): Reading[] {
  if (!JSON_NUMBER.test(text)) return [];
  const whole = integer(text);
  if (whole !== undefined) return [{ kind: 'number', value: whole, spelling: `int:${text}` }];
  const exact = parseDecimal(text);
  const double = Number(text);
  const isExact =
    exact !== null && Number.isFinite(double) && compareDecimals(exactValue(double), exact) === 0;
  const asDecimal = decimal(text);
  return [
    ...(Number.isFinite(double)
      ? [{ kind: 'number' as const, value: new Double(double), spelling: `num:${text}` }]
      : []),
    ...(isExact || asDecimal === undefined
      ? []
      : [{ kind: 'decimal' as const, value: asDecimal, spelling: `dec:${text}` }]),
  ];
}

function integer(text: string): Int32 | Long | undefined {
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) return undefined;
  const value = BigInt(text);
  if (value !== BigInt.asIntN(64, value)) return undefined;
  return value === BigInt.asIntN(32, value) ? new Int32(Number(value)) : Long.fromBigInt(value);
}

function number(text: string): Int32 | Long | Double | undefined {
  if (!JSON_NUMBER.test(text)) return undefined;
  const double = Number(text);
  return integer(text) ?? (Number.isFinite(double) ? new Double(double) : undefined);
}

function decimal(text: string): Decimal128 | undefined {
  return JSON_NUMBER.test(text) && parseDecimal(text, { exact: true })
    ? Decimal128.fromString(text)
    : undefined;
}

function objectId(text: string): ObjectId | undefined {
  return OBJECT_ID.test(text) ? new ObjectId(text) : undefined;
}

function uuid(text: string): UUID | undefined {
  return UUID_TEXT.test(text) ? new UUID(text) : undefined;
}

/** A time without a zone is UTC, as in the rows that this server writes. */
function date(text: string): Date | undefined {
  const read = DATE.test(text) ? exactDate(text, true) : undefined;
  return typeof read === 'string' ? undefined : read;
}

function boolean(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined;
}
