import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '../base/error-reason.ts';
import type { Faults } from './faults.ts';
import type { Follower } from './follower.ts';
import { answerTo } from './http/get.ts';
import type { Requests } from './http/requests.ts';
import type { Recorder } from './recorder.ts';

/** Where users are written. */
export interface WritesTo {
  readonly requests: Requests;
  /** The path of a collection of users, such as `/api/users`. */
  readonly path: string;
}

/** The least time between two writes. Milliseconds. */
const EVERY_MS = 1000;
/** A line that has not come so long after its write is missed. Milliseconds. */
const MISSED_MS = 10_000;

/** Writes a user again and again, and measures how long its line takes to each follower. */
export class Writes {
  readonly #to: WritesTo;
  readonly #followers: () => readonly Follower[];
  readonly #recorder: Recorder;
  readonly #faults: Faults;
  /** Writes that were answered well, and others. */
  done = 0;
  failed = 0;
  /** Lines that did not reach a follower in time, and those that did. */
  missed = 0;
  reached = 0;

  /** `followers`: those that are open now. */
  constructor(to: WritesTo, followers: () => readonly Follower[], recorder: Recorder, faults: Faults) {
    this.#to = to;
    this.#followers = followers;
    this.#recorder = recorder;
    this.#faults = faults;
  }

  /** Writes until the signal is aborted, each time when all have the line of the write before. Then removes the user. */
  async run(signal: AbortSignal): Promise<void> {
    const { requests, path } = this.#to;
    const user = `${path}/load-${randomUUID()}`;
    while (await sleep(EVERY_MS, true, { signal }).catch(() => false)) {
      const followers = this.#followers();
      if (followers.length > 0) await this.#write(user, followers, signal);
    }
    if (this.done + this.failed === 0) return;
    try {
      await send(requests, requests.write('DELETE', user, null));
    } catch (error) {
      this.failed++;
      this.#faults.add('write', `${user} was not removed: ${reasonOf(error)}`);
    }
  }

  async #write(user: string, followers: readonly Follower[], signal: AbortSignal): Promise<void> {
    const { requests } = this.#to;
    const mark = randomUUID();
    const missing = this.#lines(followers, mark, signal);
    const body = { name: 'load test', email: 'load@example.org', metadata: { mark } };
    try {
      await send(requests, requests.write('PUT', user, body));
      this.done++;
      this.missed += await missing;
    } catch (error) {
      this.failed++;
      this.#faults.add('write', reasonOf(error));
    }
  }

  /** Measures from now on. Resolves with how many of these followers miss the line. */
  #lines(followers: readonly Follower[], mark: string, signal: AbortSignal): Promise<number> {
    const sent = performance.now();
    let missing = followers.length;
    return new Promise((resolve) => {
      const end = (missed: number) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
        resolve(missed);
      };
      const stop = () => end(0);
      const timer = setTimeout(() => end(missing), MISSED_MS);
      signal.addEventListener('abort', stop, { once: true });
      for (const follower of followers)
        follower.look(mark, () => {
          this.#recorder.latency('delay', performance.now() - sent);
          this.reached++;
          if (--missing === 0) end(0);
        });
    });
  }
}

async function send({ origin }: Requests, request: string): Promise<void> {
  const { head } = await answerTo(origin, request);
  if (head.status >= 300) throw new Error(`the answer was ${head.status}`);
}
