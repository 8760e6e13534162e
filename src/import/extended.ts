import { Decimal128, Double, EJSON, Int32, Long, ObjectId, UUID } from '../store/bson.ts';
import { BadRow } from './row.ts';
import { quoted } from '../terminal/text.ts';

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
 * The BSON value that an Extended JSON object stands for. Throws BadRow when it is not a valid and complete
 * one.
 */
export function extendedValue(object: Readonly<Record<string, unknown>>): unknown {
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
    throw new BadRow(`${quoted(JSON.stringify(object))} is no Extended JSON value: ${error.message}`);
  }
}

function rare(object: Readonly<Record<string, unknown>>): unknown {
  const { value } = EJSON.deserialize({ value: object }, { relaxed: false }) as { value: unknown };
  if (value !== null && typeof value === 'object' && '_bsontype' in value) return value;
  throw new TypeError('its content is not of the right form');
}

/** A date from milliseconds since 1970 (a number, or wrapped as `$numberLong`), or from an ISO 8601 time. */
function date(content: unknown): Date {
  const milliseconds =
    content !== null && typeof content === 'object' && '$numberLong' in content
      ? Number(integer(content.$numberLong, 64))
      : content;
  const value =
    typeof milliseconds === 'number' ? new Date(milliseconds) : new Date(matching(content, ISO_TIME));
  if (Number.isNaN(value.getTime())) throw new TypeError('not a date JavaScript can hold');
  return value;
}

function integer(content: unknown, bits: 32 | 64): bigint {
  const value = BigInt(matching(typeof content === 'number' ? String(content) : content, /^-?\d+$/));
  if (value !== BigInt.asIntN(bits, value)) throw new TypeError(`more than ${bits} bits`);
  return value;
}

function matching(content: unknown, form: RegExp): string {
  if (typeof content === 'string' && form.test(content)) return content;
  throw new TypeError('its content is not of the right form');
}
