import type { SlowRequest } from './result.ts';

const MOST = 20;

/** The slowest requests, slowest first. */
export class Slowest {
  readonly #all: SlowRequest[] = [];

  get all(): readonly SlowRequest[] {
    return this.#all;
  }

  /** Whether a request of this latency, in milliseconds, is one of them. */
  takes(latency: number): boolean {
    return this.#all.length < MOST || latency > (this.#all.at(-1)?.latency ?? 0);
  }

  add(request: SlowRequest): void {
    const at = this.#all.findIndex(({ latency }) => latency < request.latency);
    this.#all.splice(at < 0 ? this.#all.length : at, 0, {
      ...request,
      latency: Math.round(request.latency * 10) / 10,
    });
    this.#all.length = Math.min(this.#all.length, MOST);
  }
}
