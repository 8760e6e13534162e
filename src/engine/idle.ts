const LOOK_MS = 20;

/** Resolves when `idle` has returned true for `quietMs` without a break, or after `atMostMs`. Both in milliseconds. */
export function untilIdle(idle: () => boolean, quietMs: number, atMostMs: number): Promise<void> {
  const until = performance.now() + atMostMs;
  return new Promise((resolve) => {
    let idleSince: number | null = null;
    const timer = setInterval(() => {
      const now = performance.now();
      idleSince = idle() ? (idleSince ?? now) : null;
      if (now < until && (idleSince === null || now - idleSince < quietMs)) return;
      clearInterval(timer);
      resolve();
    }, LOOK_MS);
  });
}
