import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { ClientSide } from './figures.ts';

/** How often the monitor samples the delay of the event loop. The figures include this time. Milliseconds. */
const RESOLUTION_MS = 10;

/** Measures this process, since the reading before. */
export class ClientMeter {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #cpu = process.cpuUsage();
  #at = performance.now();

  constructor() {
    this.#delay.enable();
  }

  read(): ClientSide {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const cpu = (user + system) / 1000 / Math.max(1, now - this.#at);
    const longest = Math.max(0, this.#delay.max / 1e6 - RESOLUTION_MS);
    this.#cpu = process.cpuUsage();
    this.#at = now;
    this.#delay.reset();
    return {
      cpu: Math.round(cpu * 100) / 100,
      loopDelay: Math.round(longest * 10) / 10,
      memory: process.memoryUsage.rss(),
    };
  }

  stop(): void {
    this.#delay.disable();
  }
}
