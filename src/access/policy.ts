import { AppError } from '../base/errors.ts';

/** Forms of the settings. A window is one whole unit, because the headers support only seconds. */
export const RATE_LIMIT_FORM = '^(off|[1-9]\\d{0,8}/(s|min|h))$';
export const OWN_RATE_FORM = '^[1-9]\\d{0,8}/(s|min|h)$';
export const STREAM_LIMIT_FORM = '^(off|[1-9]\\d{0,5})$';

const WINDOWS: Readonly<Record<string, number>> = { s: 1, min: 60, h: 3600 };

/** `limit` requests in `windowSeconds` seconds. */
export interface Policy {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** What a client has left after a request. */
export interface Allowance {
  readonly allowed: boolean;
  /** Requests left in this window. */
  readonly remaining: number;
  /** Whole seconds until the client has the full limit again; at least 1. */
  readonly resetSeconds: number;
}

/** Parses RATE_LIMIT, such as `60000/min` or `100/s`, whose form was checked; null for `off`. */
export function parseRateLimit(text: string): Policy | null {
  return text === 'off' ? null : parseRate(text);
}

export function parseRate(text: string): Policy {
  const [limit, unit = ''] = text.split('/');
  const windowSeconds = WINDOWS[unit];
  if (windowSeconds === undefined) throw new TypeError(`not a rate limit: ${text}`);
  return { limit: Number(limit), windowSeconds };
}

/** Parses STREAM_LIMIT, such as `64`; Infinity for `off`. */
export function parseStreamLimit(text: string): number {
  return text === 'off' ? Infinity : Number(text);
}

/** See draft-ietf-httpapi-ratelimit-headers-10. q and r are in requests, w and t in seconds. */
export function limitHeaders(
  { limit, windowSeconds }: Policy,
  { remaining, resetSeconds }: Allowance,
): Readonly<Record<string, string>> {
  return {
    'ratelimit-policy': `"default";q=${limit};w=${windowSeconds}`,
    ratelimit: `"default";r=${remaining};t=${resetSeconds}`,
  };
}

/** Retry-After is not earlier than the reset in RateLimit (draft, section 5). `isOwn`: the limit is the key's. */
export function tooManyRequests(
  { limit, windowSeconds }: Policy,
  { resetSeconds }: Allowance,
  isOwn = false,
): AppError {
  return new AppError(
    'rate-limited',
    `${isOwn ? 'The key allows' : 'RATE_LIMIT allows a client'} ${limit} requests in ${windowSeconds} s. Try again in ${resetSeconds} s.`,
    { retrySeconds: resetSeconds },
  );
}
