/** After the last answer of a stop: a client that has its next request on the way still gets it answered. Milliseconds. */
const QUIET_MS = 200;
const LOOK_MS = 20;

/** Resolves when `idle` has held for a moment, or after `atMostMs`. */
export function quiet(idle: () => boolean, atMostMs: number): Promise<void> {
  const until = performance.now() + atMostMs;
  return new Promise((resolve) => {
    let idleSince: number | null = null;
    const timer = setInterval(() => {
      const now = performance.now();
      idleSince = idle() ? (idleSince ?? now) : null;
      if (now < until && (idleSince === null || now - idleSince < QUIET_MS)) return;
      clearInterval(timer);
      resolve();
    }, LOOK_MS);
  });
}
