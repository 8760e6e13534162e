import type { Schema } from '../base/schema.ts';

interface Header {
  readonly description: string;
  readonly schema: Schema;
}

const text = (description: string, more: Schema = {}): Header => ({
  description,
  schema: { type: 'string', ...more },
});

/** None has an example in its schema: the reference page would fill it in and send it, and `If-Match` then fails. */
export const REQUEST_HEADERS = {
  'If-Match': text(
    'make the change only if the resource has one of these ETags, such as `"5f0c2d9be1a47386"`; `*`: only if it exists',
  ),
  'If-None-Match': text(
    'proceed only if the resource has none of these ETags; `*`: only if it does not exist',
  ),
  Prefer: text(
    '`return=minimal`: respond without a body; `respond-async`: create an export instead of a stream (RFC 7240)',
  ),
  Range: text('the range of bytes to return, such as `bytes=0-99` (RFC 9110, section 14)'),
  'Last-Event-ID': text('the cursor of the last event with an id: see `since` (HTML, section 9.2)'),
  'If-Range': text('return the range only if the file has this ETag, otherwise the whole file'),
} as const satisfies Record<string, Header>;

export const COMMON_HEADERS = {
  'X-Request-Id': text("the request id: the client's own, or one that the server made", {
    pattern: '^[A-Za-z0-9_.-]{1,128}$',
  }),
  'X-Content-Type-Options': text('always `nosniff`', { enum: ['nosniff'] }),
} as const satisfies Record<string, Header>;

/** Headers that answers declare. Headers of every answer, and of limits, are not declared. */
export const RESPONSE_HEADERS = {
  ETag: text('identifies the state of the resource', { pattern: '^(W/)?"[^"]*"$' }),
  'Cache-Control': text('how the response may be cached'),
  'Content-Location': text('the URL of the resource in the body'),
  'Content-Disposition': text('the file name for a download'),
  'Content-Range': text('the range of bytes in the body, and the length of the file'),
  'Accept-Ranges': text('always `bytes`: range requests are supported'),
  'Repr-Digest': text('the SHA-256 digest of the whole file (RFC 9530)'),
  'Estimated-Rows': text('about how many rows the stream has', { pattern: '^[0-9]+$' }),
  'Sorted-By': text('the order of the rows, if the request named none and it is not that of ids'),
  'Changes-From': text(
    'the cursor from which the changes since this response began follow: `since` of /{resource}/changes',
  ),
  Incremental: text('always `?1`: the content is of use before its end (RFC 10036)', { enum: ['?1'] }),
  'X-Accel-Buffering': text('always `no`: the same for nginx', { enum: ['no'] }),
  Link: text('the URLs of the first, next and previous page (RFC 8288)'),
  Location: text('the URL of the created resource, or of the stream to begin anew with'),
  'Preference-Applied': text('the preference that the server applied (RFC 7240)'),
  'Retry-After': text('the number of seconds to wait before the next try', { pattern: '^[0-9]+$' }),
} as const satisfies Record<string, Header>;

/** Headers of every answer unless RATE_LIMIT is off. */
export const LIMIT_HEADERS = {
  RateLimit: text(
    'the requests left (r) and the seconds until the limit resets (t): `"default";r=59999;t=60`',
  ),
  'RateLimit-Policy': text('the rate limit: requests (q) per seconds (w): `"default";q=60000;w=60`'),
} as const satisfies Record<string, Header>;
