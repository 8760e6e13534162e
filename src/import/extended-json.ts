import { exactDate } from '../input/dates.ts';
import {
  Binary,
  BSON,
  BSONRegExp,
  BSONSymbol,
  Code,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  Timestamp,
  UUID,
} from '../store/values/bson.ts';
import { objectIdOf, wholeNumberOf } from '../store/values/value-texts.ts';
import { quoted } from '../terminal/text.ts';
import type { DocumentWriter } from './document-writer.ts';
import { anyUuidOf } from './numbers.ts';
import { BadRow } from './row.ts';

type Members = Readonly<Record<string, unknown>>;

/** A time must have a zone. Without one, it would be another time on another machine. */
const ISO_TIME = /^(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d.*(?:Z|[+-]\d\d:?\d\d)$/;
const UINT32 = 2 ** 32;
const UUID_BYTES = 16;

/**
 * Extended JSON (v2, canonical and relaxed), as mongoexport writes it, by the names of an object in their order. The
 * parser of bson accepts wrong values silently (`{"$numberInt":"x"}` becomes 0, `$binary` takes any text, unknown
 * members are ignored), so all types are checked here. `$undefined` and `$dbPointer` are left out: bson cannot write them.
 */
const TYPES: ReadonlyMap<string, (members: Members) => unknown> = new Map(
  Object.entries<(members: Members) => unknown>({
    $oid: ({ $oid }) => objectIdOf(matching($oid)) ?? wrong(),
    $uuid: ({ $uuid }) => anyUuidOf(matching($uuid)) ?? wrong(),
    $date: ({ $date }) => date($date),
    $numberInt: ({ $numberInt }) => new Int32(Number(integer($numberInt, 32))),
    $numberLong: ({ $numberLong }) => Long.fromBigInt(integer($numberLong, 64)),
    $numberDouble: ({ $numberDouble }) => new Double(double($numberDouble)),
    $numberDecimal: ({ $numberDecimal }) => Decimal128.fromString(matching($numberDecimal, /./)),
    $binary: ({ $binary }) => {
      const { base64, subType } = exactly($binary, 'base64', 'subType');
      return binary(base64, subType);
    },
    '$binary $type': ({ $binary, $type }) => binary($binary, $type), // mongoexport before 4.2
    $timestamp: ({ $timestamp }) => {
      const { t, i } = exactly($timestamp, 't', 'i');
      return new Timestamp({ t: uint32(t), i: uint32(i) });
    },
    $regularExpression: ({ $regularExpression }) => {
      const { pattern, options } = exactly($regularExpression, 'pattern', 'options');
      return new BSONRegExp(matching(pattern), matching(options));
    },
    '$regex $options': ({ $regex, $options }) => new BSONRegExp(matching($regex), matching($options)),
    $code: ({ $code }) => new Code(matching($code)),
    '$code $scope': ({ $code, $scope }) => {
      if ($scope === null || $scope?.constructor !== Object) wrong();
      return new Code(matching($code), $scope);
    },
    $symbol: ({ $symbol }) => new BSONSymbol(matching($symbol)),
    $minKey: ({ $minKey }) => one($minKey, new MinKey()),
    $maxKey: ({ $maxKey }) => one($maxKey, new MaxKey()),
  }),
);

/**
 * Replaces an object, the last element, by the BSON value that it stands for. Its first name begins with $. A reference
 * stays an object. `text`: the object as JSON. Throws BadRow when it is no valid Extended JSON.
 */
export function writeExtended(writer: DocumentWriter, name: Uint8Array, offset: number, text: () => string) {
  const options = { promoteLongs: false, promoteValues: false, bsonRegExp: true };
  const members = BSON.deserialize(writer.bytesAt(offset), options);
  if (members instanceof BSON.DBRef) return;
  const names = Object.keys(members);
  const read = TYPES.get(names.join(' '));
  if (!read) throw new BadRow(`the field name ${quoted(names[0] ?? '')} begins with $`);
  try {
    const value = read(members);
    writer.rewind(offset);
    writer.value(name, value);
  } catch (error) {
    // The bson classes throw BSONError or TypeError for invalid values. The fault lies in the row.
    if (!(error instanceof Error)) throw error;
    throw new BadRow(`${quoted(text())} is not a valid Extended JSON value`);
  }
}

/** The members of an object that has exactly these names. */
function exactly<Name extends string>(content: unknown, ...names: Name[]): Record<Name, unknown> {
  const given = content !== null && content?.constructor === Object ? Object.keys(content) : [];
  if (given.length !== names.length || !names.every((name) => given.includes(name))) wrong();
  return content as Record<Name, unknown>;
}

/** A date from milliseconds since 1970 (a number, or wrapped as `$numberLong`), or from an ISO 8601 time. */
function date(content: unknown): Date {
  const value =
    typeof content === 'string'
      ? exactDate(matching(content, ISO_TIME), false)
      : new Date(Number(integer(content, 64)));
  return value instanceof Date && !Number.isNaN(value.getTime()) ? value : wrong();
}

function binary(base64: unknown, subType: unknown): Binary {
  const bytes = Buffer.from(matching(base64), 'base64');
  if (bytes.toString('base64') !== base64) wrong();
  const type = parseInt(matching(subType, /^[0-9a-fA-F]{1,2}$/), 16);
  return type === Binary.SUBTYPE_UUID && bytes.length === UUID_BYTES
    ? new UUID(bytes)
    : new Binary(bytes, type);
}

function double(content: unknown): number {
  const number = matching(content, /^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|-?Infinity|NaN)$/);
  return Number.isFinite(Number(number)) || /^\D+$/.test(number) ? Number(number) : wrong();
}

/** A whole number from its text, or from a JSON number. */
function integer(content: unknown, bits: 32 | 64): bigint {
  const isNumber = content instanceof Int32 || content instanceof Double || content instanceof Long;
  return wholeNumberOf(matching(isNumber ? content.toString() : content, /^-?\d+$/), bits) ?? wrong();
}

function uint32(content: unknown): number {
  const value = Number(integer(typeof content === 'string' ? null : content, 64));
  if (value < 0 || value >= UINT32) wrong();
  return value;
}

function one<Value>(content: unknown, value: Value): Value {
  if (!(content instanceof Int32) || content.value !== 1) wrong();
  return value;
}

function matching(content: unknown, form = /^/): string {
  return typeof content === 'string' && form.test(content) ? content : wrong();
}

/** See writeExtended, which gives the reason. */
function wrong(): never {
  throw new TypeError();
}
