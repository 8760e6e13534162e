/** A stream that may take `maxMs` milliseconds ends this long before, or a fifth of its time before if that is less. */
const MARGIN_MS = 2_000;

/** When a stream that begins now must end at a checkpoint, on the clock of `now`. Undefined: never. */
export function endAtOf(maxMs: number, now: () => number): number | undefined {
  return maxMs === Infinity ? undefined : now() + maxMs - Math.min(MARGIN_MS, maxMs / 5);
}
