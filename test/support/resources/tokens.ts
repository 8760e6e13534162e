import { feedPlaceOf, type FeedCursor } from '../../../src/resources/token/feed-cursor.ts';
import { rowBehind } from '../../../src/resources/token/cursor.ts';
import { decodeToken, type Token } from '../../../src/resources/token/token.ts';
import type { Bookmark } from '../../../src/store/bookmark.ts';
import type { IdRange, Plan } from '../../../src/store/store.ts';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { encodePart, idsOf } from '../../../src/resources/stream/part.ts';

type Times = Pick<Token, 'at' | 'since' | 'identity'>;

function timesOf({ at, since, identity }: Token): Times {
  return {
    ...(at !== undefined && { at }),
    ...(since !== undefined && { since }),
    ...(identity !== undefined && { identity }),
  };
}

/** What a cursor says, as a request with this plan reads it. */
export function decodeCursor(text: string, collection: string, plan: Plan): Times & { after: Bookmark } {
  const token = decodeToken(text, 'row', 'cursor');
  return { after: rowBehind(token, collection, plan), ...timesOf(token) };
}

export function decodePart(text: string): Times & { ids: IdRange } {
  const token = decodeToken(text, 'part', 'part');
  return { ids: idsOf(token), ...timesOf(token) };
}

export function decodeFeedCursor(text: string, collection: string, plan: Plan): FeedCursor {
  return feedPlaceOf(decodeToken(text, 'feed', 'since'), collection, plan);
}

/** A part of rows that are asked for without values. */
export function plainPart(range: IdRange, times: Times = {}): string {
  return encodePart(range, { types: Uint8Array.of(), ...times });
}

/** A token of any bytes, with a sound checksum. */
export function forgedToken(version: number, ...content: readonly Uint8Array[]): string {
  const bytes = Buffer.concat([Buffer.of(version), ...content, Buffer.alloc(4)]);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
  return bytes.toString('base64url');
}
