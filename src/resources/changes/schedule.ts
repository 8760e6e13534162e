import { FIRST_BATCH } from '../../pipeline/chain.ts';
import type { Size } from '../../store/store.ts';
import type { FeedOptions } from './run-options.ts';

/** The default of `heartbeatMs`. Proxies close what is silent for a minute. */
const HEARTBEAT_MS = 15_000;
/** What was sent is followed by a checkpoint within this time, when nothing more comes. */
const SETTLE_MS = 1_000;
/** A checkpoint after so many lines costs nothing, where the place has just moved on. */
const MANY_LINES = 5_000;
/** How long a read waits that is behind although it brings nothing: changes of other sets are passed. */
const BEHIND_MS = 50;
/** A walk reads on for this long before it looks for changes, and looks for them this long, or so often. */
export const LEG_MS = 250;
export const LEG_ROWS = 20_000;
const DRAIN_MS = 250;
const DRAIN_READS = 4;
export const LOOK_UP: Size = { rows: 1_000, bytes: FIRST_BATCH.bytes, patient: true };

/** What was written since the last checkpoint, and when that was. */
type Since = () => { readonly lines: number; readonly at: number };

type PaceOptions = Pick<FeedOptions, 'end' | 'now' | 'heartbeatMs'>;

/** When a feed writes checkpoints, how long it waits for changes, and how long a walk looks for them. */
export class Pace {
  readonly #options: PaceOptions;
  readonly #since: Since;
  readonly #waitEnd: number;
  readonly #heartbeatMs: number;
  /** Whether the last checkpoint said that the reader is up to date. */
  #isTold = false;
  #drains = { left: 0, until: 0 };

  constructor(options: PaceOptions, since: Since) {
    this.#options = options;
    this.#since = since;
    this.#waitEnd = options.now() + options.end.waitMs;
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS;
  }

  isCheckpointDue(isUpToDate: boolean): boolean {
    const { lines, at } = this.#since();
    const ms = this.#options.now() - at;
    const most = isUpToDate ? this.#quietMs(lines) : this.#heartbeatMs;
    return lines >= MANY_LINES || ms >= most;
  }

  /** A checkpoint was written, which said whether the reader is up to date. */
  told(isUpToDate: boolean): void {
    this.#isTold = isUpToDate;
  }

  /** Whether a reader that waits for the first change has waited long enough. */
  get hasWaited(): boolean {
    return this.#options.now() >= this.#waitEnd;
  }

  /** How long a read may wait for the next change: to the next checkpoint, while there is nothing to do. */
  waitMs(state: {
    readonly isUpToDate: boolean;
    readonly isWalking: boolean;
    readonly isIdle: boolean;
  }): number {
    const { end, now } = this.#options;
    if (!state.isUpToDate) return !state.isWalking && state.isIdle ? BEHIND_MS : 0;
    const { lines, at } = this.#since();
    const dueIn = at + this.#quietMs(lines) - now();
    return Math.max(0, Math.min(dueIn, end.follows ? Infinity : this.#waitEnd - now()));
  }

  /** A walk looks for changes now. */
  drain(): void {
    this.#drains = { left: DRAIN_READS, until: this.#options.now() + DRAIN_MS };
  }

  /** A walk has looked once. */
  drained({ isAll }: { readonly isAll: boolean }): void {
    this.#drains.left = isAll ? 0 : this.#drains.left - 1;
  }

  get isDrained(): boolean {
    return this.#drains.left <= 0 || this.#options.now() >= this.#drains.until;
  }

  /** How long a reader that is up to date waits for a checkpoint. It is soon told that it is. */
  #quietMs(lines: number): number {
    const hasNews = lines > 0 || !this.#isTold;
    return hasNews ? Math.min(SETTLE_MS, this.#heartbeatMs) : this.#heartbeatMs;
  }
}
