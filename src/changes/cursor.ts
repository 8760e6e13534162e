import { AppError } from '../errors.ts';
import { cursorMismatch, fingerprint, isKeyValue, MAX_CURSOR_BYTES } from '../pages/cursor.ts';
import { decodeToken, encodeToken } from '../pages/token.ts';
import { splitTypes, typesOfToken, valueTypes } from '../pages/value-types.ts';
import { BSON } from '../store/bson.ts';
import { KEY, keyOf, type Bookmark, type Identity } from '../store/bookmark.ts';
import type { FeedPlace } from '../store/change-feed.ts';
import type { Plan } from '../store/store.ts';

/**
 * Cursor of a feed: a place in the history of a set, and how far a walk through the set has come, in a token (see
 * pages/token.ts) of
 *
 *     version 9: types of the plan's values (pages/value-types.ts) | flags (1 byte) | fingerprint of collection and
 *     filter (4) | seen (8, if SEEN) | length (1) and identity (if IDENTITY) | length (2) and token | bookmark (if
 *     PLACED)
 *
 * The server keeps nothing. A store may take the place of another collection for its own, so the cursor carries the
 * collection's whole identity.
 */
const VERSION = 9;
const FLAGS = { walking: 1, placed: 2, seen: 4, identity: 8, hex: 16 } as const;
const ALL_FLAGS = 31;
const FINGERPRINT_BYTES = 4;
/** Ids in hexadecimal digits take half their bytes. */
const HEX = /^([0-9a-f]{2})+$/;

/** How far a walk in order of id has come: to the row of a bookmark, null: it has no row yet, `over`: to the end. */
export type WalkPlace = Bookmark | null | 'over';

/** What the cursor of a feed carries. */
export interface FeedCursor {
  readonly place: FeedPlace;
  readonly walk: WalkPlace;
  readonly identity: Identity | undefined;
}

/** The filter that a cursor is bound to: the order and the index of a plan do not matter to changes. */
function filterOf({ equals }: Plan): Plan {
  return { sort: KEY, direction: 1, ...(equals && { equals }) };
}

/**
 * Encodes the cursor of a feed of these rows. Undefined when it is longer than this server takes: the token and the
 * bookmark may hold long ids.
 */
export function encodeFeedCursor(
  collection: string,
  plan: Plan,
  { place, walk, identity }: FeedCursor,
): string | undefined {
  const isPlaced = walk !== null && walk !== 'over';
  if (place.token.length + (isPlaced ? walk.length : 0) > MAX_CURSOR_BYTES) return undefined;
  const isHex = identity !== undefined && HEX.test(identity);
  const flags =
    (walk === 'over' ? 0 : FLAGS.walking) |
    (isPlaced ? FLAGS.placed : 0) |
    (place.seen === undefined ? 0 : FLAGS.seen) |
    (identity === undefined ? 0 : FLAGS.identity) |
    (isHex ? FLAGS.hex : 0);
  const content: Uint8Array[] = [
    valueTypes(plan),
    Uint8Array.of(flags),
    fingerprint(collection, filterOf(plan)),
  ];
  if (place.seen !== undefined) content.push(sized(place.seen, 8));
  if (identity !== undefined) {
    const bytes = Buffer.from(identity, isHex ? 'hex' : 'utf8');
    content.push(sized(BigInt(bytes.length), 1), bytes);
  }
  content.push(sized(BigInt(place.token.length), 2), place.token);
  if (isPlaced) content.push(walk);
  const cursor = encodeToken(VERSION, ...content);
  return cursor.length <= MAX_CURSOR_BYTES ? cursor : undefined;
}

/** A number as this many bytes, little-endian. */
function sized(value: bigint, bytes: 1 | 2 | 8): Uint8Array {
  const whole = Buffer.alloc(8);
  whole.writeBigUInt64LE(value);
  return whole.subarray(0, bytes);
}

/** The types of the values that a cursor was made with. Null when it is none of a feed, or is broken. */
export function typesOfFeedCursor(cursor: string): Uint8Array | null {
  return typesOfToken(cursor, [VERSION]);
}

/**
 * Decodes the cursor of a feed, which came in `parameter`. AppError `invalid-cursor` when it is not one of this server,
 * `cursor-mismatch` when it was made for another collection or filter.
 */
export function decodeFeedCursor(
  cursor: string,
  collection: string,
  plan: Plan,
  parameter: string,
): FeedCursor {
  const refuse = (reason: string, cause?: unknown) => invalid(reason, parameter, cause);
  const token = decodeToken(cursor, [VERSION]);
  if (typeof token === 'string') throw refuse(token);
  const content = splitTypes(token.content)?.rest;
  if (!content) throw refuse('it is too short');
  const reader = new Reader(content, () => refuse('it is too short'));
  const flags = reader.number(1);
  if (flags > ALL_FLAGS) throw refuse('its form is unknown');
  const has = (flag: number) => (flags & flag) !== 0;
  if (!reader.take(FINGERPRINT_BYTES).equals(fingerprint(collection, filterOf(plan))))
    throw cursorMismatch(
      'The cursor belongs to another collection or filter. Repeat those of the request that it came from.',
      parameter,
    );
  const seen = has(FLAGS.seen) ? reader.take(8).readBigUInt64LE() : undefined;
  const identity = has(FLAGS.identity)
    ? reader.take(reader.number(1)).toString(has(FLAGS.hex) ? 'hex' : 'utf8')
    : undefined;
  const feedToken = new Uint8Array(reader.take(reader.number(2)));
  const rest = reader.rest();
  if (!has(FLAGS.placed) && rest.length > 0) throw refuse('it is too long');
  const bookmark = has(FLAGS.placed) ? idOf(rest, refuse) : null;
  return {
    place: { token: feedToken, ...(seen !== undefined && { seen }) },
    walk: has(FLAGS.walking) ? bookmark : 'over',
    identity,
  };
}

/** Reads the parts of a token in their order. */
class Reader {
  readonly #bytes: Buffer;
  readonly #tooShort: () => AppError;
  #at = 0;

  constructor(bytes: Buffer, tooShort: () => AppError) {
    this.#bytes = bytes;
    this.#tooShort = tooShort;
  }

  take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw this.#tooShort();
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  number(bytes: 1 | 2): number {
    return this.take(bytes).readUIntLE(0, bytes);
  }

  rest(): Buffer {
    return this.take(this.#bytes.length - this.#at);
  }
}

/** A forged cursor may carry a sound checksum with any content. Only the bookmark of an id passes. */
function idOf(bytes: Uint8Array, refuse: (reason: string, cause?: unknown) => AppError): Bookmark {
  const bookmark = new Uint8Array(bytes) as Bookmark;
  try {
    const key = keyOf(bookmark);
    if (Object.keys(key).join() === KEY && isKeyValue(key._id)) return bookmark;
  } catch (error) {
    if (BSON.BSONError.isBSONError(error)) throw refuse('its key is not BSON', error);
    throw error;
  }
  throw refuse('its key is not an id');
}

function invalid(reason: string, parameter: string, cause: unknown): AppError {
  return new AppError(
    'invalid-cursor',
    `${parameter} is not a valid cursor of changes: ${reason}. Use the cursor of a checkpoint, an end or Changes-From unchanged.`,
    { parameter, cause },
  );
}
