import { crc32Combine } from '../stream/crc32-combine.ts';

/** How far a pull is: all rows up to here are proved. */
export interface Place {
  /** Continues behind the last of them; null: at the beginning. */
  readonly cursor: string | null;
  readonly rows: number;
  /** Of their lines as NDJSON, LF included. */
  readonly bytes: number;
  /** CRC-32 of these bytes. */
  readonly crc32: number;
  /** Whether that is all there is. */
  readonly ended: boolean;
}

export const BEGINNING: Place = { cursor: null, rows: 0, bytes: 0, crc32: 0, ended: false };

/** What is proved of parts that follow each other. Its cursor is nobody's. */
export function sumOf(places: readonly Place[]): Place {
  return places.reduce((sum, { rows, bytes, crc32, ended }) => ({
    cursor: null,
    rows: sum.rows + rows,
    bytes: sum.bytes + bytes,
    crc32: crc32Combine(sum.crc32, crc32, bytes),
    ended: sum.ended && ended,
  }));
}

/** The request for what follows a place: `limit` counts what is there already. */
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

/** Whether a URL's own `limit` is reached: the server's last word may have been lost behind the last checkpoint. */
export function isComplete(url: URL, { rows, ended }: Place): boolean {
  const limit = limitOf(url);
  return ended || (limit !== null && rows >= limit && rows > 0);
}

/** How many rows a URL asks for; null: all. */
export function limitOf(url: URL): number | null {
  const limit = url.searchParams.get('limit');
  return limit !== null && /^\d{1,15}$/.test(limit) ? Number(limit) : null;
}
