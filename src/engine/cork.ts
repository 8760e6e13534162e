import type { HttpResponse } from './uws/library.ts';

/** Runs `action`, which writes at most CORK_BYTES, so that all it writes is sent in one piece. Returns its result. */
export function corked<T>(response: Pick<HttpResponse, 'cork'>, action: () => T): T {
  let result: T | undefined;
  response.cork(() => {
    result = action();
  });
  return result as T;
}

/**
 * The most bytes of one cork, with status, headers and chunk frame. uWebSockets.js collects a cork in 16 KiB. A write
 * that does not fit into the rest of them is lost while the socket is full (half of the slow readers saw wrong bytes).
 */
export const CORK_BYTES = 16_000;
