import { AppError } from '../errors.ts';
import { documented, text } from '../input/parameter.ts';
import { isKeyValue } from '../pages/cursor.ts';
import { MARK_BYTES, markBytes } from '../pages/mark.ts';
import { decodeToken, encodeToken } from '../pages/token.ts';
import { splitTypes, typesOfToken } from '../pages/value-types.ts';
import { keyOf, makeBookmark, type Bookmark, type Identity, type PointInTime } from '../store/bookmark.ts';
import { BSON } from '../store/bson.ts';
import { exactValues } from '../store/exact-values.ts';
import type { IdRange } from '../store/store.ts';

/**
 * Part: a range of ids as clients carry it, in a token (see pages/token.ts) of
 *
 *     version 1: {from, to} as BSON, each the exact id, or absent where the range is open
 *     version 2: mark of the collection's identity (4 bytes) | {from, to}
 *     versions 3 and 4: types of the plan's values (see pages/value-types.ts), then as in versions 1 and 2
 *     versions 5 to 8: the earliest time that reads may see (Plan.since, 8 bytes), then as in versions 1 to 4
 *
 * Version 1 is for a store whose collections have no identity, and for tokens of earlier releases.
 */
const PLAIN = 1;
const MARKED = 2;
const TYPED = 2;
const TIMED = 4;
const TYPED_VERSIONS = [3, 4, 7, 8];
const VERSIONS = [1, 2, 3, 4, 5, 6, 7, 8];
const TIME_BYTES = 8;

export interface Part {
  readonly ids: IdRange;
  /** See pages/mark.ts. All parts are of one collection. */
  readonly mark?: number;
  /** Reads see at least this time, from which the changes of all parts together follow. */
  readonly since?: PointInTime;
}

/** A longer id cannot bound a part, because a part and a cursor that begins in it must fit one URL. Bytes. */
const LONGEST_BOUND = 640;

/** The limit holds two such ids and the rest of the token, in base64. */
export const partParameter = documented(
  text('part', 2048),
  'Return only the rows of this part: a value from the partitions of the collection.',
);

/** Whether a part can begin or end at this id. */
export function isBoundOfPart(id: Bookmark): boolean {
  return id.length <= LONGEST_BOUND && isKeyValue(keyOf(id)._id);
}

/** What a part carries beside its range. `types`: of the plan's values, when a text can stand for several. */
export interface PartOptions {
  readonly identity?: Identity | undefined;
  readonly types?: Uint8Array | undefined;
  readonly since?: PointInTime | undefined;
}

export function encodePart({ from, to }: IdRange, { identity, types, since }: PartOptions = {}): string {
  const bounds = { ...(from && { from: keyOf(from)._id }), ...(to && { to: keyOf(to)._id }) };
  const head: Uint8Array[] = types ? [types] : [];
  if (since !== undefined) {
    const time = Buffer.alloc(TIME_BYTES);
    time.writeBigUInt64LE(since);
    head.push(time);
  }
  if (identity !== undefined) head.push(markBytes(identity));
  const kind = identity === undefined ? PLAIN : MARKED;
  const version = kind + (types ? TYPED : 0) + (since === undefined ? 0 : TIMED);
  return encodeToken(version, ...head, BSON.serialize(bounds));
}

/** The types of the values that a part was made with. Null when it carries none, or is broken. */
export function typesOfPart(part: string): Uint8Array | null {
  return typesOfToken(part, TYPED_VERSIONS);
}

/** Decodes a part. AppError `invalid-parameter` when it is not a valid part of this server. */
export function decodePart(part: string): Part {
  const token = decodeToken(part, VERSIONS);
  if (typeof token === 'string') throw invalid(token);
  const isTyped = TYPED_VERSIONS.includes(token.version);
  const content = isTyped ? splitTypes(token.content)?.rest : token.content;
  if (!content) throw invalid('it is too short');
  const markAt = token.version > TIMED ? TIME_BYTES : 0;
  const isMarked = token.version % 2 === 0;
  const idsAt = markAt + (isMarked ? MARK_BYTES : 0);
  if (content.length < idsAt) throw invalid('it is too short');
  const since = markAt > 0 ? content.readBigUInt64LE(0) : undefined;
  if (since === 0n) throw invalid('its time is none');
  return {
    ids: idsOf(content.subarray(idsAt)),
    ...(isMarked && { mark: content.readUInt32LE(markAt) }),
    ...(since !== undefined && { since }),
  };
}

function idsOf(bytes: Uint8Array): IdRange {
  const bounds = parse(bytes);
  if (!Object.keys(bounds).every((name) => name === 'from' || name === 'to'))
    throw invalid('it has members other than its bounds');
  return { ...boundOf('from', bounds), ...boundOf('to', bounds) };
}

function boundOf(name: 'from' | 'to', bounds: Record<string, unknown>): Record<string, Bookmark> {
  if (!(name in bounds)) return {};
  if (!isKeyValue(bounds[name])) throw invalid('its bounds are not ids');
  return { [name]: makeBookmark({ _id: bounds[name] }) };
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  try {
    return exactValues(bytes);
  } catch (error) {
    if (BSON.BSONError.isBSONError(error)) throw invalid('its bounds are not BSON', error);
    throw error;
  }
}

function invalid(reason: string, cause?: unknown): AppError {
  return new AppError(
    'invalid-parameter',
    `The part is not valid: ${reason}. Use a part from the partitions of the collection unchanged.`,
    { parameter: 'part', cause },
  );
}
