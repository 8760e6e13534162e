import { exactDate } from '../input/dates.ts';
import { Decimal128, Double, EJSON, Int32, Long, ObjectId, UUID } from '../store/bson.ts';
import { quoted } from '../terminal/text.ts';
import { TooManyDigits } from './numbers.ts';
import { BadRow } from './row.ts';

/** The maximum number of levels of objects and arrays in an item. The item itself is the first level. */
export const MAX_DEPTH = 32;

const WRONG_FORM = 'its content has the wrong form';
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Extended JSON (v2, canonical and relaxed), as mongoexport writes it: an object whose first key names a
 * type, such as `{"$oid": "..."}`. The parser of bson accepts wrong values silently (`{"$numberInt":"x"}`
 * becomes 0, an invalid `$date` an invalid date, a `$numberLong` beyond int64 another number), so the common
 * types are checked here.
 */
const TYPES: Readonly<Record<string, (content: unknown) => unknown>> = {
  $oid: (content) => new ObjectId(matching(content, /^[0-9a-fA-F]{24}$/)),
  $uuid: (content) => new UUID(matching(content, /^[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$/)),
  $date: date,
  $numberInt: (content) => new Int32(Number(integer(content, 32))),
  $numberLong: (content) => Long.fromBigInt(integer(content, 64)),
  $numberDouble: (content) =>
    new Double(Number(matching(content, /^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|-?Infinity|NaN)$/))),
  $numberDecimal: (content) => Decimal128.fromString(matching(content, /./)),
};

/** A time must have a zone. Without one, it would be another time on another machine. */
const ISO_TIME = /^(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d.*(?:Z|[+-]\d\d:?\d\d)$/;

/**
 * Types that are rare in items, with the number of their keys. The parser of bson is good enough for them.
 */
const RARE: Readonly<Record<string, number>> = {
  $binary: 1,
  $timestamp: 1,
  $regularExpression: 1,
  $code: 1,
  $symbol: 1,
  $minKey: 1,
  $maxKey: 1,
};

/**
 * The stored form of a value in a JSON row: the value itself, with Extended JSON objects replaced in place by
 * their BSON values. Throws BadRow for anything an item may not contain: names with `$`, NUL or `__proto__`,
 * more than 32 levels, text that is not Unicode, numbers that no BSON number holds.
 */
export function storedValue(value: unknown, depth = 2): unknown {
  if (typeof value === 'string') return storedText(value);
  if (typeof value === 'number') return storedNumber(value);
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof Long || value instanceof Decimal128) return value;
  if (value instanceof TooManyDigits) throw tooManyDigits(value.text);
  if (depth > MAX_DEPTH) throw new BadRow(`the value is nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) value[index] = storedValue(element, depth + 1);
    return value;
  }
  return storedObject(value as Record<string, unknown>, depth);
}

/** Throws BadRow when an item may not have a field of this name. */
export function checkName(name: string): void {
  const fault = nameFault(name);
  if (fault !== null) throw new BadRow(`the field name ${quoted(name)} ${fault}`);
}

/** The reason why an item may not have a field of this name. null when it may. */
export function nameFault(name: string): string | null {
  if (name.startsWith('$')) return 'begins with $';
  if (name.includes('\0')) return 'contains a NUL character';
  if (name === '__proto__') return 'is not allowed';
  return LONE_SURROGATE.test(name) ? 'is not valid Unicode' : null;
}

function storedObject(object: Record<string, unknown>, depth: number): unknown {
  const names = Object.keys(object);
  if (names[0]?.startsWith('$')) return extendedValue(object);
  for (const name of names) {
    checkName(name);
    object[name] = storedValue(object[name], depth + 1);
  }
  return object;
}

/** The error for a number that cannot be stored with all its digits. */
export function tooManyDigits(text: string): BadRow {
  return new BadRow(`the number ${quoted(text)} cannot be stored with all its digits (a Decimal128 has 34)`);
}

function storedText(text: string): string {
  // A lone `\ud800` is valid JSON, but UTF-8 cannot encode it. It would be stored as another character.
  if (LONE_SURROGATE.test(text))
    throw new BadRow(`the string ${quoted(text)} contains half of a surrogate pair`);
  return text;
}

function storedNumber(value: number): number {
  if (!Number.isFinite(value)) throw new BadRow('a number is too large to be stored');
  return value;
}

/**
 * The BSON value that an Extended JSON object stands for. Throws BadRow when it is not a valid and complete
 * one.
 */
function extendedValue(object: Readonly<Record<string, unknown>>): unknown {
  const keys = Object.keys(object);
  const [type = ''] = keys;
  const known = Object.hasOwn(TYPES, type) || Object.hasOwn(RARE, type);
  if (!known || keys.length !== 1) throw new BadRow(`the field name ${quoted(type)} begins with $`);
  try {
    const read = TYPES[type];
    return read ? read(object[type]) : rare(object);
  } catch (error) {
    // The bson classes throw BSONError or TypeError for invalid values. The fault lies in the row.
    if (!(error instanceof Error)) throw error;
    throw new BadRow(
      `${quoted(JSON.stringify(object))} is not a valid Extended JSON value: ${error.message}`,
    );
  }
}

function rare(object: Readonly<Record<string, unknown>>): unknown {
  const { value } = EJSON.deserialize({ value: object }, { relaxed: false }) as { value: unknown };
  if (value !== null && typeof value === 'object' && '_bsontype' in value) return value;
  throw new TypeError(WRONG_FORM);
}

/** A date from milliseconds since 1970 (a number, or wrapped as `$numberLong`), or from an ISO 8601 time. */
function date(content: unknown): Date {
  const milliseconds =
    content !== null && typeof content === 'object' && '$numberLong' in content
      ? Number(integer(content.$numberLong, 64))
      : content;
  // JavaScript takes February 30 for March 1, and 24:00 for the next day.
  const value =
    typeof milliseconds === 'number' ? new Date(milliseconds) : exactDate(matching(content, ISO_TIME), false);
  if (typeof value === 'string') throw new TypeError(`the date ${value}`);
  if (Number.isNaN(value.getTime())) throw new TypeError('the date is not valid');
  return value;
}

function integer(content: unknown, bits: 32 | 64): bigint {
  const value = BigInt(matching(typeof content === 'number' ? String(content) : content, /^-?\d+$/));
  if (value !== BigInt.asIntN(bits, value)) throw new TypeError(`the integer has more than ${bits} bits`);
  return value;
}

function matching(content: unknown, form: RegExp): string {
  if (typeof content === 'string' && form.test(content)) return content;
  throw new TypeError(WRONG_FORM);
}
