import { crc32 } from '../stream/crc32.ts';

/**
 * Token: bytes as clients carry them in a URL, base64url of
 *
 *     version (1 byte) | content | CRC-32 of all before (4)
 *
 * It needs no server state and grants no authority. It is decoded like any untrusted input. The checksum only tells a
 * broken token from a forged one.
 */
const HEAD = 1;
const TAIL = 4;

/** Encodes pieces of content as a token. */
export function encodeToken(version: number, ...content: readonly Uint8Array[]): string {
  const size = content.reduce((sum, { length }) => sum + length, HEAD + TAIL);
  const bytes = Buffer.allocUnsafe(size);
  let at = bytes.writeUInt8(version);
  for (const piece of content) {
    bytes.set(piece, at);
    at += piece.length;
  }
  bytes.writeUInt32LE(crc32(bytes.subarray(0, at)), at);
  return bytes.toString('base64url');
}

/** A token's version and content. */
export interface Token {
  readonly version: number;
  readonly content: Buffer;
}

/** Decodes a token of one of these versions. Returns a text that says why when it is not one. */
export function decodeToken(token: string, versions: readonly number[]): Token | string {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.toString('base64url') !== token || bytes.length < HEAD + TAIL)
    return 'it is not base64url text that this server issued';
  if (bytes.readUInt32LE(bytes.length - TAIL) !== crc32(bytes.subarray(0, -TAIL)))
    return 'its checksum is wrong';
  const version = bytes.readUInt8(0);
  if (!versions.includes(version)) return 'its version is unknown';
  return { version, content: bytes.subarray(HEAD, -TAIL) };
}
