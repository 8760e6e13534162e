import { Binary, Decimal128, Double, Int32, Long, ObjectId } from './bson.ts';
import { KEY, keyOf, makeBookmark, type Bookmark } from '../bookmark.ts';

/** Keys of one type as whole numbers of the same order. */
interface Scale {
  /** Null for a key of another type. */
  readonly read: (key: unknown) => bigint | null;
  readonly write: (number: bigint) => unknown;
}

const SCALES: readonly Scale[] = [
  {
    read: (key) => (key instanceof ObjectId ? BigInt(`0x${key.toHexString()}`) : null),
    write: (number) => new ObjectId(hex(number, 24)),
  },
  {
    read: (key) => (key instanceof Date ? BigInt(key.getTime()) : null),
    write: (number) => new Date(Number(number)),
  },
  {
    read: (key) =>
      key instanceof Binary && key.sub_type === Binary.SUBTYPE_UUID && key.length() === 16
        ? BigInt(`0x${key.toString('hex')}`)
        : null,
    write: (number) => new Binary(Buffer.from(hex(number, 32), 'hex'), Binary.SUBTYPE_UUID),
  },
];

/**
 * Places that divide what lies between two rows into `parts` of the same size by the value that they are ordered by. No
 * row is read, so one part may have more rows than another. Null between texts, or values of two types.
 */
export function placesBetween(first: Bookmark, last: Bookmark, parts: number, path = KEY) {
  const { [path]: from, _id } = keyOf(first);
  const at = valuesBetween(from, keyOf(last)[path], parts);
  if (!at) return null;
  return Array.from({ length: parts - 1 }, (_, n) => makeBookmark({ _id, [path]: at(n + 1) }));
}

/** The function that gives the value at the end of each part, counted from 1. */
function valuesBetween(from: unknown, to: unknown, parts: number): ((part: number) => unknown) | null {
  for (const { read, write } of SCALES) {
    const low = read(from);
    const high = read(to);
    if (low !== null && high !== null)
      return (part) => write(low + ((high - low) * BigInt(part)) / BigInt(parts));
  }
  const low = numberOf(from);
  const high = numberOf(to);
  const share = (part: number) => low * (1 - part / parts) + high * (part / parts);
  return Number.isFinite(low) && Number.isFinite(high) ? (part) => new Double(share(part)) : null;
}

/** The number of a value, rounded to a double. NaN for other values. */
function numberOf(value: unknown): number {
  const isNumber = [Int32, Long, Double, Decimal128].some((type) => value instanceof type);
  return isNumber ? Number(String(value)) : NaN;
}

function hex(number: bigint, digits: number): string {
  return number.toString(16).padStart(digits, '0');
}
