import type { HttpResponse } from './uws/library.ts';

/**
 * What `action` returns, run with the response corked: all it writes travels in one piece. It must write at most
 * CORK_BYTES.
 */
export function corked<T>(response: Pick<HttpResponse, 'cork'>, action: () => T): T {
  let result: T | undefined;
  response.cork(() => {
    result = action();
  });
  return result as T;
}

/**
 * The most that one cork may carry, status, headers and chunk frame included. uWebSockets.js collects a cork in a buffer
 * of 16 KiB; a write that does not fit into the rest of it is lost while the socket is full (seen as wrong bytes with
 * half of the slow readers).
 */
export const CORK_BYTES = 16_000;
