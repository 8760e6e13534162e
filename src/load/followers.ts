import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '../thrown.ts';
import type { Faults } from './faults.ts';
import { cursorOfNow, Follower } from './follower.ts';
import { answerTo } from './http/get.ts';
import type { Requests } from './http/requests.ts';
import type { Recorder } from './recorder.ts';
import type { Followers as FollowersResult } from './result.ts';

export interface FollowersOptions {
  readonly requests: Requests;
  /** The path of the feed of changes. */
  readonly path: string;
  readonly count: number;
  /** The path of a collection of users, where a user is written again and again. null: nothing is written. */
  readonly write: string | null;
  readonly recorder: Recorder;
  readonly faults: Faults;
}

const APART_MS = 2;
/** The least time between two writes. Milliseconds. */
const WRITE_EVERY_MS = 1000;
/** A line that has not come so long after its write is missed. Milliseconds. */
const MISSED_MS = 10_000;
const STEP_MS = 20;

/** All followers of a run, and what writes for them. */
export class Followers {
  readonly #options: FollowersOptions;
  readonly #stop = new AbortController();
  #all: Follower[] = [];
  #runs: Promise<void>[] = [];
  #writes = 0;
  #failedWrites = 0;
  #missed = 0;
  #openAtEnd = 0;

  constructor(options: FollowersOptions) {
    this.#options = options;
    setMaxListeners(0, this.#stop.signal);
  }

  get open(): number {
    return this.#all.filter(({ isOpen }) => isOpen).length;
  }

  /** Begins to follow, from now on. Rejects with Refused or Interrupted when there is no such feed. */
  async start(): Promise<void> {
    const { requests, path, count, write } = this.#options;
    const cursor = await cursorOfNow(requests, path);
    const { signal } = this.#stop;
    this.#all = Array.from({ length: count }, () => new Follower({ ...this.#options, signal }, cursor));
    this.#runs = this.#all.map((follower, i) =>
      sleep(i * APART_MS, undefined, { signal }).then(
        () => follower.run(),
        () => undefined, // the run ended before this one began
      ),
    );
    if (write !== null) this.#runs.push(this.#write(write));
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
      ...{ writes: this.#writes, failedWrites: this.#failedWrites, missed: this.#missed },
    };
  }

  /** Writes a user again and again, each time when all have the line of the write before. Removes it at the end. */
  async #write(path: string): Promise<void> {
    const { requests, faults } = this.#options;
    const { signal } = this.#stop;
    const user = `${path}/load-${randomUUID()}`;
    const wait = () => sleep(WRITE_EVERY_MS, true, { signal }).catch(() => false);
    while (await wait()) {
      const open = this.#all.filter(({ isOpen }) => isOpen);
      if (open.length === 0) continue;
      const mark = randomUUID();
      const late = this.#awaitLine(open, mark);
      const body = { name: 'load test', email: 'load@example.org', metadata: { mark } };
      try {
        const { head } = await answerTo(requests.origin, requests.write('PUT', user, body));
        if (head.status >= 300) throw new Error(`${user} answered ${head.status}`);
        this.#writes++;
        await late;
      } catch (error) {
        this.#failedWrites++;
        faults.add('faults4xx', `a write: ${reasonOf(error)}`);
      }
    }
    await answerTo(requests.origin, requests.write('DELETE', user, null)).catch((error: unknown) =>
      faults.add('cut', `the user ${user} was not removed: ${reasonOf(error)}`),
    );
  }

  /** Resolves when all these followers have the line, or it is missed. */
  async #awaitLine(followers: readonly Follower[], mark: string): Promise<void> {
    const { recorder } = this.#options;
    const sent = performance.now();
    let missing = followers.length;
    for (const follower of followers)
      follower.look(mark, () => {
        missing--;
        recorder.latency('delay', performance.now() - sent);
      });
    while (missing > 0 && performance.now() - sent < MISSED_MS && !this.#stop.signal.aborted)
      await sleep(STEP_MS);
    if (!this.#stop.signal.aborted) this.#missed += missing;
  }
}
