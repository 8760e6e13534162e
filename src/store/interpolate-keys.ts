import { Binary, Int32, Long, ObjectId } from './bson.ts';
import { keyOf, makeBookmark, type Bookmark } from './bookmark.ts';

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
    read: (key) => (key instanceof Int32 ? BigInt(key.value) : null),
    write: (number) => new Int32(Number(number)),
  },
  {
    read: (key) => (key instanceof Long ? key.toBigInt() : null),
    write: (number) => Long.fromBigInt(number),
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
 * Places that divide the keys from `first` to `last` into `parts` of the same size by value, in order of key, without
 * reading any row. Null when nothing can be calculated between these keys: they are texts, say, or of two types. Rows
 * may lie closer together in one part than in another.
 */
export function placesBetween(first: Bookmark, last: Bookmark, parts: number): Bookmark[] | null {
  const [from, to] = [keyOf(first)._id, keyOf(last)._id];
  for (const { read, write } of SCALES) {
    const [low, high] = [read(from), read(to)];
    if (low === null || high === null) continue;
    const at = (part: number) => low + ((high - low) * BigInt(part)) / BigInt(parts);
    return Array.from({ length: parts - 1 }, (_, n) => makeBookmark({ _id: write(at(n + 1)) }));
  }
  return null;
}

function hex(number: bigint, digits: number): string {
  return number.toString(16).padStart(digits, '0');
}
