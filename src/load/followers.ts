import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Faults } from './faults.ts';
import { cursorOfNow, Follower } from './follower.ts';
import type { Requests } from './http/requests.ts';
import type { Recorder } from './recorder.ts';
import type { Followers as FollowersResult } from './result.ts';
import { Writes, type WritesTo } from './writes.ts';

interface FollowersOptions {
  readonly requests: Requests;
  /** The path of the feed of changes. */
  readonly path: string;
  readonly count: number;
  /** null: nothing is written. */
  readonly write: WritesTo | null;
  readonly recorder: Recorder;
  readonly faults: Faults;
}

const APART_MS = 2;
/** All followers of a run, and what writes for them. */
export class Followers {
  readonly #options: FollowersOptions;
  readonly #stop = new AbortController();
  readonly #writes: Writes | null;
  #all: Follower[] = [];
  #runs: Promise<void>[] = [];
  #openAtEnd = 0;

  constructor(options: FollowersOptions) {
    const { write, recorder, faults } = options;
    this.#options = options;
    this.#writes = write && new Writes(write, () => this.#open, recorder, faults);
    setMaxListeners(0, this.#stop.signal);
  }

  get open(): number {
    return this.#open.length;
  }

  get #open(): readonly Follower[] {
    return this.#all.filter(({ isOpen }) => isOpen);
  }

  /** Begins to follow, from now on. Rejects with Refused or Interrupted when there is no such feed. */
  async start(): Promise<void> {
    const { requests, path, count } = this.#options;
    const cursor = await cursorOfNow(requests, path);
    const { signal } = this.#stop;
    this.#all = Array.from({ length: count }, () => new Follower({ ...this.#options, signal }, cursor));
    this.#runs = this.#all.map((follower, i) =>
      sleep(i * APART_MS, undefined, { signal }).then(
        () => follower.run(),
        () => undefined, // the run ended before this one began
      ),
    );
    if (this.#writes) this.#runs.push(this.#writes.run(signal));
  }

  /** Resolves once this text has come in a line of each follower. */
  async look(text: string): Promise<void> {
    await Promise.all(this.#all.map((one) => new Promise<void>((found) => one.look(text, found))));
  }

  /** Cuts all followers. Rejects with an internal error of one. */
  async stop(): Promise<void> {
    this.#openAtEnd = this.open;
    this.#stop.abort(new Error('the run ended'));
    for (const follower of this.#all) follower.close();
    await Promise.all(this.#runs);
  }

  /** `lines` and `heartbeats`: how many came in all. */
  result(lines: number, heartbeats: number): FollowersResult {
    const sum = (of: (follower: Follower) => number) => this.#all.reduce((all, one) => all + of(one), 0);
    return {
      asked: this.#options.count,
      begun: sum(({ hasBegun }) => Number(hasBegun)),
      open: this.#openAtEnd,
      cut: sum(({ cuts }) => cuts),
      refused: sum(({ refusals }) => refusals),
      lines,
      heartbeats,
      longestSilence: Math.round(Math.max(0, ...this.#all.map(({ longestSilence }) => longestSilence))),
      writes: this.#writes?.done ?? 0,
      failedWrites: this.#writes?.failed ?? 0,
      missed: this.#writes?.missed ?? 0,
      reached: this.#writes?.reached ?? 0,
    };
  }
}
