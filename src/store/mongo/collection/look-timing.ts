/** The clock and the timer of looks at a collection. */
export interface LookTiming {
  /** A clock in milliseconds. */
  readonly now?: (() => number) | undefined;
  /** Calls `work` every `ms` milliseconds until the returned function is called. */
  readonly every?: ((ms: number, work: () => void) => () => void) | undefined;
}

/** Calls `work` every `ms` milliseconds, without keeping the process alive for it, until the returned function is called. */
export function everyReally(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms).unref();
  return () => clearInterval(timer);
}
