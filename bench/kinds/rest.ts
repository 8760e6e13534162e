import { cpuSeconds } from '../usage.ts';

/**
 * A server is at rest when it has used less than `share` of a core for `intervalMs`. The wait lasts at most
 * `longestMs`.
 */
const REST = { share: 0.1, intervalMs: 500, longestMs: 60_000 };

/**
 * Waits until the server is at rest. For readers that take nothing, it first has to produce some megabytes each, which
 * the kernel takes.
 */
export async function untilAtRest(pid: number): Promise<void> {
  const { share, intervalMs, longestMs } = REST;
  for (let waited = 0; waited < longestMs; waited += intervalMs) {
    const before = cpuSeconds(pid);
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
    if ((cpuSeconds(pid) - before) * 1000 < share * intervalMs) return;
  }
}
