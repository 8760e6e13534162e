import { setMaxListeners } from 'node:events';
import type { Compression } from '../pull/proved-rows.ts';
import type { Faults } from './faults.ts';
import type { Requests } from './http/requests.ts';
import { Puller } from './puller.ts';
import type { Recorder } from './recorder.ts';
import type { Fairness, PullerRow } from './result.ts';
import { StalledReader } from './stalled.ts';

interface PullersOptions {
  readonly requests: Requests;
  /** The streams that are pulled, by turns. */
  readonly urls: readonly URL[];
  readonly format: string;
  readonly compression: Compression;
  readonly full: number;
  readonly slow: { readonly readers: number; readonly bytesPerSecond: number } | null;
  readonly stalled: number;
  /** 0: none. */
  readonly cutsPerMinute: number;
  readonly random: () => number;
  readonly recorder: Recorder;
  readonly faults: Faults;
}

/** Streams are begun at this distance, so that the queue of the listening socket does not overflow. Milliseconds. */
const APART_MS = 2;

/** All readers of streams of a run. */
export class Pullers {
  readonly #options: PullersOptions;
  readonly #stop = new AbortController();
  readonly #full: Puller[];
  readonly #slow: Puller[];
  readonly #stalled: StalledReader[];
  readonly #timers: NodeJS.Timeout[] = [];
  #runs: Promise<void>[] = [];

  constructor(options: PullersOptions) {
    const { requests, urls, recorder, faults, slow, full, stalled } = options;
    this.#options = options;
    setMaxListeners(0, this.#stop.signal);
    const at = (i: number) => {
      const url = urls[i % urls.length];
      if (!url) throw new TypeError('readers of streams need a URL');
      return url;
    };
    const puller = (bytesPerSecond: number | null) => (_: unknown, i: number) =>
      new Puller({ ...options, url: at(i), bytesPerSecond, signal: this.#stop.signal });
    this.#full = Array.from({ length: full }, puller(null));
    this.#slow = Array.from({ length: slow?.readers ?? 0 }, puller(slow?.bytesPerSecond ?? 1));
    this.#stalled = Array.from(
      { length: stalled },
      (_, i) => new StalledReader(requests, at(i), recorder, faults),
    );
  }

  /** The number of open streams. */
  get open(): number {
    return [...this.#full, ...this.#slow, ...this.#stalled].filter(({ isOpen }) => isOpen).length;
  }

  start(): void {
    [...this.#full, ...this.#slow].forEach((puller, i) => {
      this.#timers.push(setTimeout(() => this.#runs.push(puller.run()), i * APART_MS));
    });
    this.#stalled.forEach((reader, i) => {
      this.#timers.push(setTimeout(() => reader.start(), i * APART_MS));
    });
    const { cutsPerMinute, random } = this.#options;
    if (cutsPerMinute === 0) return;
    const cut = () => this.#full[Math.floor(random() * this.#full.length)]?.cut();
    this.#timers.push(setInterval(cut, 60_000 / cutsPerMinute));
  }

  /** Cuts all streams. Rejects with an internal error of a puller. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const reader of this.#stalled) reader.close();
    this.#stop.abort(new Error('the run ended'));
    for (const puller of [...this.#full, ...this.#slow]) puller.close();
    await Promise.all(this.#runs);
  }

  rows(): PullerRow[] {
    return [...this.#full, ...this.#slow, ...this.#stalled].map((reader) => reader.row());
  }
}

/** The spread among the pullers of full speed. null with fewer than two. */
export function fairnessOf(rows: readonly PullerRow[]): Fairness | null {
  const speeds = rows
    .filter(({ kind }) => kind === 'full')
    .map(({ rowsPerSecond }) => rowsPerSecond)
    .sort((a, b) => a - b);
  if (speeds.length < 2) return null;
  const sum = speeds.reduce((a, b) => a + b, 0);
  const squares = speeds.reduce((a, b) => a + b * b, 0);
  return {
    slowest: speeds[0] ?? 0,
    median: speeds[speeds.length >> 1] ?? 0,
    fastest: speeds.at(-1) ?? 0,
    index: squares === 0 ? 1 : Math.round((sum * sum * 1000) / (speeds.length * squares)) / 1000,
  };
}
