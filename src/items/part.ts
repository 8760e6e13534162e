import { AppError } from '../errors.ts';
import { text } from '../http/parameter.ts';
import { isKeyValue } from '../pages/cursor.ts';
import { keyOf, makeBookmark, type Bookmark } from '../store/bookmark.ts';
import { BSON } from '../store/bson.ts';
import type { IdRange } from '../store/store.ts';
import { crc32 } from '../stream/crc32.ts';

/**
 * Part: a range of ids as clients carry it, base64url of
 *
 *     version (1 byte) | {from, to} (BSON; each the exact id, or missing where the range is open) | CRC-32 of all before (4)
 *
 * It needs no server state and gives no authority: it is decoded as any untrusted input, as a cursor is.
 */
const VERSION = 1;
const HEAD = 1;
const TAIL = 4;

/** Two ids of 256 bytes, and what stands around them. */
export const partParameter = text('part', 1024);

export function encodePart({ from, to }: IdRange): string {
  const bounds = { ...(from && { from: keyOf(from)._id }), ...(to && { to: keyOf(to)._id }) };
  const bytes = Buffer.concat([Buffer.of(VERSION), BSON.serialize(bounds), Buffer.alloc(TAIL)]);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, -TAIL)), bytes.length - TAIL);
  return bytes.toString('base64url');
}

/** The range of ids a part carries. AppError `invalid-parameter` when it is anything but a part of ours. */
export function decodePart(part: string): IdRange {
  const bytes = Buffer.from(part, 'base64url');
  if (bytes.toString('base64url') !== part || bytes.length < HEAD + TAIL)
    throw invalid('it is not base64url of a part');
  if (bytes.readUInt32LE(bytes.length - TAIL) !== crc32(bytes.subarray(0, -TAIL)))
    throw invalid('its checksum is wrong');
  if (bytes.readUInt8(0) !== VERSION) throw invalid('its version is not known');
  const bounds = parse(bytes.subarray(HEAD, -TAIL));
  if (!Object.keys(bounds).every((name) => name === 'from' || name === 'to'))
    throw invalid('its bounds are not those of ids');
  return { ...boundOf('from', bounds), ...boundOf('to', bounds) };
}

function boundOf(name: 'from' | 'to', bounds: Record<string, unknown>): Record<string, Bookmark> {
  if (!(name in bounds)) return {};
  if (!isKeyValue(bounds[name])) throw invalid('its bounds are not ids');
  return { [name]: makeBookmark({ _id: bounds[name] }) };
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  try {
    return BSON.deserialize(bytes, {
      promoteValues: false,
      promoteBuffers: false,
      validation: { utf8: false },
    });
  } catch (error) {
    if (BSON.BSONError.isBSONError(error)) throw invalid('its bounds are not BSON', error);
    throw error;
  }
}

function invalid(reason: string, cause?: unknown): AppError {
  return new AppError(
    'invalid-parameter',
    `The part cannot be used: ${reason}. Take one from GET /items/partitions, unchanged.`,
    { parameter: 'part', cause },
  );
}
