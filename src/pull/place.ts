import { crc32Combine } from '../stream/crc32-combine.ts';

/** The progress of a pull: all rows up to here are proved. */
export interface Place {
  /** Continues behind the last proved row. null at the beginning. */
  readonly cursor: string | null;
  readonly rows: number;
  /** The bytes of these rows as NDJSON lines, including each LF. */
  readonly bytes: number;
  /** CRC-32 of these bytes. */
  readonly crc32: number;
  /** Whether these are all rows of the set. */
  readonly ended: boolean;
}

export const BEGINNING: Place = { cursor: null, rows: 0, bytes: 0, crc32: 0, ended: false };

/** The combined proof of consecutive parts. It has no cursor. */
export function sumOf(places: readonly Place[]): Place {
  return places.reduce((sum, { rows, bytes, crc32, ended }) => ({
    cursor: null,
    rows: sum.rows + rows,
    bytes: sum.bytes + bytes,
    crc32: crc32Combine(sum.crc32, crc32, bytes),
    ended: sum.ended && ended,
  }));
}

/** The URL that requests the rows behind a place. `limit` is reduced by the rows already pulled. */
export function urlFrom(url: URL, { cursor, rows }: Place): URL {
  const next = new URL(url);
  const { searchParams: query } = next;
  query.set('format', 'ndjson');
  query.set('checkpoints', 'true');
  if (cursor !== null) {
    query.delete('after');
    query.set('cursor', cursor);
  }
  const limit = limitOf(url);
  if (limit !== null) query.set('limit', String(limit - rows));
  return next;
}

/**
 * Whether the set is whole, or the URL's own `limit` is reached. The connection may have been cut behind the
 * last checkpoint, before the end line.
 */
export function isComplete(url: URL, { rows, ended }: Place): boolean {
  const limit = limitOf(url);
  return ended || (limit !== null && rows >= limit && rows > 0);
}

/** The number of rows that a URL asks for. null for all rows. */
export function limitOf(url: URL): number | null {
  const limit = url.searchParams.get('limit');
  return limit !== null && /^\d{1,15}$/.test(limit) ? Number(limit) : null;
}
