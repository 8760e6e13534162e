import type { AppError } from '../../base/errors.ts';
import { parameterError } from '../../input/query.ts';
import { text, type Parameter } from '../../input/parameter.ts';
import type { Identity, PointInTime } from '../../store/bookmark.ts';
import { crc32 } from '../../pipeline/crc32.ts';

/**
 * Token: what a client carries from one request to another, as base64url of
 *
 *     kind (1 byte: see KINDS) | form (1 byte) | number of types (1, if the form has no room for it) | types (1 each)
 *     | fingerprint of the query (4; a part has none) | time (8, if the form says so)
 *     | identity of the collection (16, if the form says so) | body | CRC-32 of all before (4)
 *
 * Numbers are little-endian. The form has the kind of the time in bits 0 and 1 (TIMES), whether there is an identity in
 * bit 2, and the number of types in bits 4 to 6 (MANY: it follows). The body belongs to the kind: a bookmark
 * (cursor.ts), a range of ids (resources/stream/part.ts), or a place of a feed (feed-cursor.ts).
 *
 * A token needs no server state and grants no authority. It is decoded like any untrusted input, once, where its
 * parameter is read. The checksum only distinguishes a broken token from a forged one.
 */
export interface Token extends TokenHead {
  readonly kind: TokenKind;
  readonly text: string;
  /** The parameter or header that it came in, which errors name. */
  readonly parameter: string;
  readonly body: Buffer;
}

/** What a token says of its request, whatever its kind. */
export interface TokenHead {
  /** The BSON types of the walk's values (valueTypes in cursor.ts). A walk never continues with another reading. */
  readonly types: Uint8Array;
  readonly fingerprint?: number;
  /** The time of the rows. Absent: the present. */
  readonly at?: PointInTime;
  /** The earliest time that reads may see: see Plan. */
  readonly since?: PointInTime;
  /** The collection in which the walk began. A walk is never continued in another one. */
  readonly identity?: Identity;
}

/** The first byte of each kind. Other releases have other numbers. */
const KINDS = { row: 17, part: 18, feed: 19 } as const;
type TokenKind = keyof typeof KINDS;

const TIMES = { none: 0, at: 1, since: 2 } as const;
/** The bit of the form of a token with an identity, and the bytes of that. */
const IDENTIFIED = 4;
const IDENTITY_BYTES = 16;
const MANY = 7;

/** Bytes before the types, and of the checksum. */
const START = 2;
const TAIL = 4;

export function encodeToken(kind: TokenKind, head: TokenHead, ...body: readonly Uint8Array[]): string {
  const { types, fingerprint, at, since, identity } = head;
  const time = at ?? since;
  const few = Math.min(types.length, MANY);
  const most = START + 1 + types.length + 4 + 8 + IDENTITY_BYTES + TAIL;
  const bytes = Buffer.allocUnsafe(body.reduce((sum, { length }) => sum + length, most));
  const ofTime = at !== undefined ? TIMES.at : since !== undefined ? TIMES.since : TIMES.none;
  bytes[0] = KINDS[kind];
  bytes[1] = ofTime | (identity === undefined ? 0 : IDENTIFIED) | (few << 4);
  let end = START;
  const add = (piece: Uint8Array) => {
    bytes.set(piece, end);
    end += piece.length;
  };
  if (few === MANY) end = bytes.writeUInt8(types.length, end);
  add(types);
  if (fingerprint !== undefined) end = bytes.writeUInt32LE(fingerprint, end);
  if (time !== undefined) end = bytes.writeBigUInt64LE(time, end);
  if (identity !== undefined) end += bytes.write(identity, end, IDENTITY_BYTES, 'hex');
  for (const piece of body) add(piece);
  end = bytes.writeUInt32LE(crc32(bytes.subarray(0, end)), end);
  return bytes.toString('base64url', 0, end);
}

/** Decodes all but the body. AppError for a foreign token: `invalid-parameter` for a part, else `invalid-cursor`. */
export function decodeToken(given: string, kind: TokenKind, parameter: string): Token {
  const refuse = (reason: string) => refusal({ kind, parameter }, reason);
  const bytes = Buffer.from(given, 'base64url');
  if (bytes.toString('base64url') !== given || bytes.length < START + TAIL)
    throw refuse('it is not base64url text that this server issued');
  const content = bytes.subarray(0, -TAIL);
  if (bytes.readUInt32LE(content.length) !== crc32(content)) throw refuse('its checksum is wrong');
  const [version = 0, form = 0, number = 0] = content;
  if (!Object.values<number>(KINDS).includes(version))
    throw refusal({ kind, parameter }, 'it is of another release', AGAIN);
  if (version !== KINDS[kind]) throw refuse('it is of another kind');
  const ofTime = form & 3;
  const few = form >> 4;
  if (ofTime > TIMES.since || (form & 8) !== 0 || few > MANY) throw refuse('its form is unknown');
  const typesAt = few === MANY ? START + 1 : START;
  const typesEnd = typesAt + (few === MANY ? number : few);
  const timeAt = typesEnd + (kind === 'part' ? 0 : 4);
  const identityAt = timeAt + (ofTime === TIMES.none ? 0 : 8);
  const bodyAt = identityAt + ((form & IDENTIFIED) === 0 ? 0 : IDENTITY_BYTES);
  if (bodyAt > content.length) throw refuse('it is too short');
  const time = ofTime === TIMES.none ? undefined : content.readBigUInt64LE(timeAt);
  if (ofTime === TIMES.since && time === 0n) throw refuse('its time is none');
  return {
    kind,
    parameter,
    text: given,
    types: content.subarray(typesAt, typesEnd),
    body: content.subarray(bodyAt),
    ...(kind !== 'part' && { fingerprint: content.readUInt32LE(typesEnd) }),
    ...(time !== undefined && { [ofTime === TIMES.at ? 'at' : 'since']: time }),
    ...(bodyAt > identityAt && { identity: content.toString('hex', identityAt, bodyAt) }),
  };
}

/** A parameter whose text is a token. AppErrors as decodeToken, and `invalid-parameter` for a text that is too long. */
export function tokenParameter(kind: TokenKind, name: string, maximumBytes: number): Parameter<Token> {
  const given = text(name, maximumBytes);
  return {
    ...given,
    read(query) {
      const token = given.read(query);
      return token === undefined ? undefined : decodeToken(token, kind, name);
    },
  };
}

const AGAIN = 'Begin again without the cursor.';

/** What the error of each kind says before and after the reason. */
const REFUSALS = {
  row: {
    code: 'invalid-cursor',
    is: () => 'The cursor is not valid',
    advice: 'Use the cursor of a page, a checkpoint or an end unchanged.',
  },
  part: {
    code: 'invalid-parameter',
    is: () => 'The part is not valid',
    advice: 'Use a part from the partitions of the collection unchanged.',
  },
  feed: {
    code: 'invalid-cursor',
    is: (parameter: string) => `${parameter} is not a valid cursor of changes`,
    advice: 'Use the cursor of a checkpoint, an end or Changes-From unchanged.',
  },
} as const;

/** The error for a token that this server did not make: broken, forged, or of another release. */
export function refusal(
  { kind, parameter }: Pick<Token, 'kind' | 'parameter'>,
  reason: string,
  advice: string = REFUSALS[kind].advice,
  cause?: unknown,
): AppError {
  const { code, is } = REFUSALS[kind];
  const then = advice === AGAIN && kind === 'part' ? 'Ask for the partitions again.' : advice;
  return parameterError(code, parameter, `${is(parameter)}: ${reason}. ${then}`, cause);
}

/** The error for a sound token that was made for something else than the request asks for. */
export function cursorMismatch(detail: string, parameter = 'cursor'): AppError {
  return parameterError('cursor-mismatch', parameter, detail);
}
