import { collectionReplaced, type AppError } from '../../errors.ts';
import { parameterError } from '../../input/query.ts';
import { text, type Parameter } from '../../input/parameter.ts';
import type { Identity, PointInTime } from '../../store/bookmark.ts';
import { crc32 } from '../../pipeline/crc32.ts';

/**
 * Token: what a client carries from one request to another, as base64url of
 *
 *     kind (1 byte: see KINDS) | form (1 byte) | number of types (1, if the form has no room for it) | types (1 each)
 *     | fingerprint of the query (4; a part has none) | time (8, if the form says so)
 *     | mark of the collection (4), or length (1) and its whole identity | body | CRC-32 of all before (4)
 *
 * Numbers are little-endian. The form has the kind of the time in bits 0 and 1 (TIMES), that of the identity in bits 2
 * and 3 (IDENTITIES), and the number of types in bits 4 to 6 (MANY: it follows). The body belongs to the kind: a bookmark
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
  /**
   * The BSON types of the values that the walk began with (see valueTypes in cursor.ts): a text in a query can stand for
   * values of several types, and a walk is never continued with another reading.
   */
  readonly types: Uint8Array;
  readonly fingerprint?: number;
  /** The time of the rows. Absent: the present. */
  readonly at?: PointInTime;
  /** The earliest time that reads may see: see Plan. */
  readonly since?: PointInTime;
  /** See markOf. A token has this or the identity. Neither: the store's collections have no identity. */
  readonly mark?: number;
  readonly identity?: Identity;
}

/** The first byte of each kind. Other releases have other numbers. */
const KINDS = { row: 14, part: 15, feed: 16 } as const;
export type TokenKind = keyof typeof KINDS;

const TIMES = { none: 0, at: 1, since: 2 } as const;
const IDENTITIES = { none: 0, mark: 1, hex: 2, text: 3 } as const;
/** Identities in hexadecimal digits take half their bytes. */
const HEX = /^([0-9a-f]{2})+$/;
const MANY = 7;

/** Bytes before the types, and of the checksum. */
const START = 2;
const TAIL = 4;

export function encodeToken(kind: TokenKind, head: TokenHead, ...body: readonly Uint8Array[]): string {
  const { types, fingerprint, at, since, mark, identity } = head;
  const time = at ?? since;
  const isHex = identity !== undefined && HEX.test(identity);
  const whole = identity === undefined ? null : Buffer.from(identity, isHex ? 'hex' : 'utf8');
  const few = Math.min(types.length, MANY);
  const size = body.reduce((sum, { length }) => sum + length, START + 1 + types.length + 4 + 8 + 4 + TAIL);
  const bytes = Buffer.allocUnsafe(size + (whole?.length ?? 0));
  const ofTime = at !== undefined ? TIMES.at : since !== undefined ? TIMES.since : TIMES.none;
  const ofWhole = isHex ? IDENTITIES.hex : IDENTITIES.text;
  const ofIdentity = whole ? ofWhole : mark !== undefined ? IDENTITIES.mark : IDENTITIES.none;
  bytes[0] = KINDS[kind];
  bytes[1] = ofTime | (ofIdentity << 2) | (few << 4);
  let end = START;
  const add = (piece: Uint8Array) => {
    bytes.set(piece, end);
    end += piece.length;
  };
  if (few === MANY) end = bytes.writeUInt8(types.length, end);
  add(types);
  if (fingerprint !== undefined) end = bytes.writeUInt32LE(fingerprint, end);
  if (time !== undefined) end = bytes.writeBigUInt64LE(time, end);
  if (whole) {
    end = bytes.writeUInt8(whole.length, end);
    add(whole);
  } else if (mark !== undefined) end = bytes.writeUInt32LE(mark, end);
  for (const piece of body) add(piece);
  end = bytes.writeUInt32LE(crc32(bytes.subarray(0, end)), end);
  return bytes.toString('base64url', 0, end);
}

/**
 * Decodes a token of a kind, all but its body. AppError when it is not one of this server: `invalid-parameter` for a
 * part, `invalid-cursor` for the others.
 */
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
  const ofIdentity = (form >> 2) & 3;
  const few = form >> 4;
  if (ofTime > TIMES.since || few > MANY) throw refuse('its form is unknown');
  const typesAt = few === MANY ? START + 1 : START;
  const typesEnd = typesAt + (few === MANY ? number : few);
  const timeAt = typesEnd + (kind === 'part' ? 0 : 4);
  const identityAt = timeAt + (ofTime === TIMES.none ? 0 : 8);
  const wholeAt = identityAt + 1;
  const bodyAt =
    ofIdentity === IDENTITIES.none
      ? identityAt
      : ofIdentity === IDENTITIES.mark
        ? identityAt + 4
        : wholeAt + (content[identityAt] ?? 0);
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
    ...(ofIdentity === IDENTITIES.mark && { mark: content.readUInt32LE(identityAt) }),
    ...(ofIdentity >= IDENTITIES.hex && {
      identity: content.toString(ofIdentity === IDENTITIES.hex ? 'hex' : 'utf8', wholeAt, bodyAt),
    }),
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

/**
 * A short form of a collection's identity, which cursors and parts carry. By it, a continued stream notices that
 * it began in another collection. Two collections have the same mark once in 2^32 times.
 */
export function markOf(identity: Identity): number {
  return crc32(identity);
}

/**
 * AppError `collection-replaced` when a mark is of another collection. A token without a mark (undefined) is of
 * a store whose collections have no identity. It fits any collection.
 */
export function checkMark(mark: number | undefined, identity: Identity | undefined): void {
  if (mark === undefined || (identity !== undefined && mark === markOf(identity))) return;
  throw collectionReplaced();
}
