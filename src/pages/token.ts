import { crc32 } from '../stream/crc32.ts';

/**
 * Token: bytes as clients carry them in a URL, base64url of
 *
 *     version (1 byte) | content | CRC-32 of all before (4)
 *
 * It needs no server state and gives no authority: it is decoded as any untrusted input, and the checksum only tells a
 * broken one from a forged one.
 */
const HEAD = 1;
const TAIL = 4;

/** The token of some pieces of content. */
export function encodeToken(version: number, ...content: readonly Uint8Array[]): string {
  const bytes = Buffer.concat([Buffer.of(version), ...content, Buffer.alloc(TAIL)]);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, -TAIL)), bytes.length - TAIL);
  return bytes.toString('base64url');
}

/** A token's version and content. */
export interface Token {
  readonly version: number;
  readonly content: Buffer;
}

/** A token of one of these versions, or in words why it is none. */
export function decodeToken(token: string, versions: readonly number[]): Token | string {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.toString('base64url') !== token || bytes.length < HEAD + TAIL)
    return 'it is not base64url of one of ours';
  if (bytes.readUInt32LE(bytes.length - TAIL) !== crc32(bytes.subarray(0, -TAIL)))
    return 'its checksum is wrong';
  const version = bytes.readUInt8(0);
  if (!versions.includes(version)) return 'its version is not known';
  return { version, content: bytes.subarray(HEAD, -TAIL) };
}
