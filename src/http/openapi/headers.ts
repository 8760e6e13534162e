import type { Schema } from '../../schema.ts';

interface Header {
  readonly description: string;
  readonly schema: Schema;
}

const text = (description: string, more: Schema = {}): Header => ({
  description,
  schema: { type: 'string', ...more },
});

/** Request headers that operations declare. */
export const REQUEST_HEADERS = {
  'If-Match': text('the change is made only if the resource has one of these ETags', { examples: ['*'] }),
  'If-None-Match': text('`*`: only if there is none; else only if it has none of these ETags', {
    examples: ['"5f0c2d9be1a47386"'],
  }),
  Prefer: text(
    '`return=minimal`: answer without a body; `respond-async`: make an export of a stream (RFC 7240)',
    {
      examples: ['return=minimal', 'respond-async'],
    },
  ),
  Range: text('a range of bytes (RFC 9110, 14)', { examples: ['bytes=0-99'] }),
  'If-Range': text('the ETag of which the range is one', { examples: ['"5f0c2d9be1a47386"'] }),
} as const satisfies Record<string, Header>;

/** Headers of every answer. */
export const COMMON_HEADERS = {
  'X-Request-Id': text("the client's own, or one that was made", { pattern: '^[A-Za-z0-9_.-]{1,128}$' }),
  'X-Content-Type-Options': text('always `nosniff`', { enum: ['nosniff'] }),
} as const satisfies Record<string, Header>;

/** Headers that answers declare. Headers of every answer, and of limits, are not declared. */
export const RESPONSE_HEADERS = {
  ETag: text('stands for this state', { pattern: '^(W/)?"[^"]*"$' }),
  'Cache-Control': text('how long the answer may be kept'),
  'Content-Location': text('the URL of what the body shows'),
  'Content-Disposition': text('the name of the file'),
  'Content-Range': text('which bytes these are'),
  'Accept-Ranges': text('`bytes`'),
  'Repr-Digest': text('SHA-256 of the whole (RFC 9530)'),
  Link: text('the first, next and previous page (RFC 8288)'),
  Location: text('the URL of what was made'),
  'Preference-Applied': text('which preference was followed (RFC 7240)'),
  'Retry-After': text('when to come again, in seconds', { pattern: '^[0-9]+$' }),
} as const satisfies Record<string, Header>;

/** Headers of every answer unless RATE_LIMIT is off. */
export const LIMIT_HEADERS = {
  RateLimit: text('what is left of the limit: `"default";r=59999;t=60`'),
  'RateLimit-Policy': text('the limit: `"default";q=60000;w=60`'),
} as const satisfies Record<string, Header>;
