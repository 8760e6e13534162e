import type { HttpResponse } from './uws/library.ts';

/**
 * Runs `action` with the response corked, so that everything it writes is sent in one piece, and returns its result.
 * `action` must write at most CORK_BYTES.
 */
export function corked<T>(response: Pick<HttpResponse, 'cork'>, action: () => T): T {
  let result: T | undefined;
  response.cork(() => {
    result = action();
  });
  return result as T;
}

/**
 * The most bytes that one cork may carry, including status, headers and chunk frame. uWebSockets.js collects a cork
 * in a buffer of 16 KiB. A write that does not fit into the rest of that buffer is lost while the socket is full
 * (seen as wrong bytes with half of the slow readers).
 */
export const CORK_BYTES = 16_000;
