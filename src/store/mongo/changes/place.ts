import { AppError } from '../../../base/errors.ts';
import { Binary, Timestamp, type Document } from '../../values/bson.ts';
import type { PointInTime } from '../../bookmark.ts';

/**
 * A place between two events of a database: a resume token of the server, or a time, which stands before all events of
 * that time. Places are compared by `hex` as text (MongoDB documents this for `_data`): a token begins with 82 and the
 * time of its event (seconds, then increment), so a time is the beginning of all its tokens.
 */
export interface Place {
  /** `_data` of a resume token, or the first 18 digits of the tokens of a time. */
  readonly hex: string;
  /** `_typeBits` of a resume token. It has them when the id of its event is a number of another type than int. */
  readonly typeBits?: Uint8Array;
}

/** The sign that a timestamp follows, in the server's format of keys. */
const TIMESTAMP = '82';
const TIME_DIGITS = TIMESTAMP.length + 16;
/** A token contains the id of its event. Longer tokens do not fit into the cursor of a URL. */
const LONGEST_TOKEN = 1_024;

const OF_TIME = 1;
const OF_TOKEN = 2;

/** The place before all events of a time. */
export function placeOfTime(time: PointInTime): Place {
  return { hex: TIMESTAMP + time.toString(16).toUpperCase().padStart(16, '0') };
}

/** The place behind an event, or behind a batch of events. Throws TypeError when the token is none. */
export function placeOfToken(hex: unknown, typeBits?: Uint8Array): Place {
  if (typeof hex !== 'string' || !isToken(hex)) throw new TypeError('an event came without a resume token');
  return typeBits ? { hex, typeBits } : { hex };
}

/** The time of the event of a token, or the time itself. */
export function timeOf({ hex }: Place): PointInTime {
  return BigInt(`0x${hex.slice(TIMESTAMP.length, TIME_DIGITS)}`);
}

export function isBefore(a: Place, b: Place): boolean {
  return a.hex < b.hex;
}

/** Whether a place is short enough to be given to a client. */
export function isShort({ hex, typeBits }: Place): boolean {
  return hex.length / 2 + (typeBits?.length ?? 0) <= LONGEST_TOKEN;
}

export function isTime({ hex }: Place): boolean {
  return hex.length === TIME_DIGITS;
}

/** The options of a change stream that begins at a place. */
export function startingAt(place: Place): Document {
  if (isTime(place)) return { startAtOperationTime: new Timestamp(timeOf(place)) };
  const { hex: _data, typeBits } = place;
  return { resumeAfter: { _data, ...(typeBits && { _typeBits: new Binary(typeBits) }) } };
}

/** A place as the token of a FeedPlace: a byte with the kind, then a time, or the type bits and the token. */
export function encodePlace(place: Place): Uint8Array {
  const { hex, typeBits = new Uint8Array() } = place;
  const bytes = Buffer.from(hex, 'hex');
  if (isTime(place)) return Buffer.concat([Uint8Array.of(OF_TIME), bytes.subarray(1)]);
  return Buffer.concat([Uint8Array.of(OF_TOKEN, typeBits.length), typeBits, bytes]);
}

/** The place of a token. Throws AppError `invalid-cursor` when this store did not write it. */
export function decodePlace(token: Uint8Array): Place {
  const bytes = Buffer.from(token);
  const [kind, bits = 0] = bytes;
  if (kind === OF_TIME && bytes.length === 9) return placeOfTime(bytes.readBigUInt64BE(1));
  const hex = bytes.toString('hex', 2 + bits).toUpperCase();
  if (kind !== OF_TOKEN || bytes.length > 2 + LONGEST_TOKEN || !isToken(hex)) throw notOfThisStore();
  return bits > 0 ? { hex, typeBits: bytes.subarray(2, 2 + bits) } : { hex };
}

function isToken(hex: string): boolean {
  return hex.length > TIME_DIGITS && hex.startsWith(TIMESTAMP);
}

/** The error for a place that cannot be one of this server's history. */
export function notOfThisStore(cause?: unknown): AppError {
  return new AppError('invalid-cursor', 'The cursor names no place in the history of this store.', { cause });
}
