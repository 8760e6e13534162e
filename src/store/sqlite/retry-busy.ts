import { setTimeout as delay } from 'node:timers/promises';
import { isBusy } from './errors.ts';

/** How long a call may wait for other processes. Milliseconds. */
const LONGEST_MS = 30_000;

/** Repeats a call while another process is in its way, without holding the event loop. */
export async function retryBusy<T>(call: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
  const end = performance.now() + LONGEST_MS;
  for (let tries = 0; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw error;
    }
    await delay(Math.min(tries + 1, 5));
    signal?.throwIfAborted();
  }
}
