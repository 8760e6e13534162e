/** The compression is part of a file and its name, not a content coding. */
const TYPES: readonly (readonly [end: string, type: string])[] = [
  ['.ndjson', 'application/x-ndjson'],
  ['.gz', 'application/gzip'],
  ['.br', 'application/octet-stream'], // no media type is registered for brotli files
  ['.parquet', 'application/vnd.apache.parquet'],
  ['', 'application/json'],
];
const IMMUTABLE = /(?:^|\/)(?:chunks|edition)\/[^/]+$/;
const HEAD = /(?:^|\/)edition\.json$/;

/** For how long the head of a resource may be kept, and for how long it may be shown while a newer one is fetched. Seconds. */
export const HEAD_CACHING = 'max-age=5, stale-while-revalidate=30';
export const IMMUTABLE_CACHING = 'max-age=31536000, immutable';

/** The media type of a file of an edition. */
export function typeOfFile(path: string): string {
  return TYPES.find(([end]) => path.endsWith(end))?.[1] ?? '';
}

/** The headers with which storage that serves a file by itself sends it. */
export function storedHeaders(path: string): Readonly<Record<string, string>> {
  return { 'Content-Type': typeOfFile(path), 'Cache-Control': cachingOf(path) };
}

/** The Delta log is asked for anew: versions that are no longer kept go, and its last checkpoint is replaced. */
function cachingOf(path: string): string {
  if (IMMUTABLE.test(path)) return IMMUTABLE_CACHING;
  return HEAD.test(path) ? HEAD_CACHING : 'no-cache';
}
