import { exactDate } from '../input/dates.ts';
import {
  Binary,
  BSONRegExp,
  BSONSymbol,
  Code,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
  UUID,
} from '../store/bson.ts';
import { quoted } from '../terminal/text.ts';
import { BadRow } from './row.ts';

/** A JSON object. Nested objects are plain or Maps. */
type Members = ReadonlyMap<string, unknown>;
/** Makes the stored form of a value inside of another one. */
type Store = (value: unknown) => unknown;

const WRONG_FORM = 'its content has the wrong form';
/** A time must have a zone. Without one, it would be another time on another machine. */
const ISO_TIME = /^(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d.*(?:Z|[+-]\d\d:?\d\d)$/;
const UINT32 = 2 ** 32;
const UUID_BYTES = 16;

/**
 * Extended JSON (v2, canonical and relaxed), as mongoexport writes it, by the names of an object in their order. The
 * parser of bson accepts wrong values silently (`{"$numberInt":"x"}` becomes 0, `$binary` takes any text, unknown
 * members are ignored), so all types are checked here. `$undefined` and `$dbPointer` are left out: bson cannot write them.
 */
const TYPES: ReadonlyMap<string, (members: Members, store: Store) => unknown> = new Map(
  Object.entries({
    $oid: ({ $oid }: Named) => new ObjectId(matching($oid, /^[0-9a-fA-F]{24}$/)),
    $uuid: ({ $uuid }: Named) =>
      new UUID(matching($uuid, /^[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$/)),
    $date: ({ $date }: Named) => date($date),
    $numberInt: ({ $numberInt }: Named) => new Int32(Number(integer($numberInt, 32))),
    $numberLong: ({ $numberLong }: Named) => Long.fromBigInt(integer($numberLong, 64)),
    $numberDouble: ({ $numberDouble }: Named) => new Double(double($numberDouble)),
    $numberDecimal: ({ $numberDecimal }: Named) => Decimal128.fromString(matching($numberDecimal, /./)),
    $binary: ({ $binary }: Named) => {
      const { base64, subType } = exactly($binary, 'base64', 'subType');
      return binary(base64, subType);
    },
    '$binary $type': ({ $binary, $type }: Named) => binary($binary, $type), // mongoexport before 4.2
    $timestamp: ({ $timestamp }: Named) => {
      const { t, i } = exactly($timestamp, 't', 'i');
      return new Timestamp({ t: uint32(t), i: uint32(i) });
    },
    $regularExpression: ({ $regularExpression }: Named) => {
      const { pattern, options } = exactly($regularExpression, 'pattern', 'options');
      return new BSONRegExp(text(pattern), text(options));
    },
    '$regex $options': ({ $regex, $options }: Named) => new BSONRegExp(text($regex), text($options)),
    $code: ({ $code }: Named) => new Code(text($code)),
    '$code $scope': ({ $code, $scope }: Named, store: Store) => {
      const scope = store($scope);
      if (!(scope instanceof Map)) throw new TypeError(WRONG_FORM);
      return new Code(text($code), scope);
    },
    $symbol: ({ $symbol }: Named) => new BSONSymbol(text($symbol)),
    $minKey: ({ $minKey }: Named) => one($minKey, new MinKey()),
    $maxKey: ({ $maxKey }: Named) => one($maxKey, new MaxKey()),
  }).map(([names, read]) => [names, (members, store) => read(Object.fromEntries(members), store)]),
);

type Named = Readonly<Record<string, unknown>>;

/** The members of a JSON object in their order. */
export function membersOf(object: object): Members {
  return object instanceof Map ? (object as Map<string, unknown>) : new Map(Object.entries(object));
}

/** The BSON value of an object whose first name begins with $. Throws BadRow when it is no valid Extended JSON. */
export function extendedValue(members: Members, store: Store): unknown {
  const names = [...members.keys()];
  const read = TYPES.get(names.join(' '));
  if (!read) throw new BadRow(faultOf(names));
  try {
    return read(members, store);
  } catch (error) {
    // The bson classes throw BSONError or TypeError for invalid values. The fault lies in the row.
    if (!(error instanceof Error)) throw error;
    throw new BadRow(`${quoted(shown(members))} is not a valid Extended JSON value: ${error.message}`);
  }
}

function faultOf([first = '', ...others]: readonly string[]): string {
  if (first === '$undefined' || first === '$dbPointer')
    return `${first} is a type of BSON that is no longer used, and is not imported`;
  return others.length > 0 && [...TYPES.keys()].some((names) => names.split(' ')[0] === first)
    ? `the Extended JSON value ${quoted(first)} has the unknown member ${quoted(others[0] ?? '')}`
    : `the field name ${quoted(first)} begins with $`;
}

function shown(members: Members): string {
  return JSON.stringify(Object.fromEntries(members), (_, value: unknown) =>
    value instanceof Map ? (Object.fromEntries(value) as unknown) : value,
  );
}

/** The members of an object that has exactly these names. */
function exactly<Name extends string>(content: unknown, ...names: Name[]): Record<Name, unknown> {
  if (content === null || typeof content !== 'object') throw new TypeError(WRONG_FORM);
  const members = membersOf(content);
  const isExact = members.size === names.length && names.every((name) => members.has(name));
  if (!isExact) throw new TypeError(WRONG_FORM);
  return Object.fromEntries(members) as Record<Name, unknown>;
}

/** A date from milliseconds since 1970 (a number, or wrapped as `$numberLong`), or from an ISO 8601 time. */
function date(content: unknown): Date {
  const isWrapped = content !== null && typeof content === 'object';
  const milliseconds = isWrapped ? Number(integer(exactly(content, '$numberLong').$numberLong, 64)) : content;
  // JavaScript takes February 30 for March 1, and 24:00 for the next day.
  const value =
    typeof milliseconds === 'number' ? new Date(milliseconds) : exactDate(matching(content, ISO_TIME), false);
  if (typeof value === 'string') throw new TypeError(`the date ${value}`);
  if (Number.isNaN(value.getTime())) throw new TypeError('the date is not valid');
  return value;
}

function binary(base64: unknown, subType: unknown): Binary {
  const bytes = Buffer.from(text(base64), 'base64');
  if (bytes.toString('base64') !== base64) throw new TypeError('the base64 is not valid');
  const type = parseInt(matching(subType, /^[0-9a-fA-F]{1,2}$/), 16);
  return type === Binary.SUBTYPE_UUID && bytes.length === UUID_BYTES
    ? new UUID(bytes)
    : new Binary(bytes, type);
}

function double(content: unknown): number {
  const form = /^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|-?Infinity|NaN)$/;
  const number = matching(content, form);
  const value = Number(number);
  if (!Number.isFinite(value) && /\d/.test(number)) throw new TypeError('the number is beyond a double');
  return value;
}

function integer(content: unknown, bits: 32 | 64): bigint {
  const value = BigInt(matching(typeof content === 'number' ? String(content) : content, /^-?\d+$/));
  if (value !== BigInt.asIntN(bits, value)) throw new TypeError(`the integer has more than ${bits} bits`);
  return value;
}

function uint32(content: unknown): number {
  const isOne = Number.isSafeInteger(content) && Number(content) >= 0 && Number(content) < UINT32;
  if (!isOne) throw new TypeError(WRONG_FORM);
  return Number(content);
}

function one<Value>(content: unknown, value: Value): Value {
  if (content !== 1) throw new TypeError(WRONG_FORM);
  return value;
}

function text(content: unknown): string {
  return matching(content, /^\P{Surrogate}*$/u);
}

function matching(content: unknown, form: RegExp): string {
  if (typeof content === 'string' && form.test(content)) return content;
  throw new TypeError(WRONG_FORM);
}
