import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Attempt } from './meter.ts';
import { EditionLeaseLostError, type EditionRecord, type EditionRecords } from './record.ts';

/** How often the lease is renewed within its time, and how often the log says how far a walk has come. */
const BEATS_A_LEASE = 4;
const BEAT_MS = 1_000;
const LOG_MS = 60_000;

interface BeatOptions {
  readonly records: EditionRecords;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly leaseMs: number;
  /** Resolves after `ms` milliseconds. Rejects when the signal is aborted before that. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly log: Log;
  readonly resource: string;
  readonly lease: EditionRecord['lease'];
  readonly token: string;
  readonly attempt: Attempt;
}

/** Renews the lease of an attempt, and notes how far its walk has come, until `end`. */
export class Beat {
  readonly #options: BeatOptions;
  readonly #lost = new AbortController();
  readonly #ended = new AbortController();
  readonly #running: Promise<void>;
  #until: number;
  #loggedAt: number;

  constructor(options: BeatOptions) {
    this.#options = options;
    this.#until = options.lease?.until ?? 0;
    this.#loggedAt = options.now();
    this.#running = this.#run();
  }

  /** Aborted with the reason when the lease is lost. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Throws when the lease is lost, or its time is over without a beat: this process may have been stopped for a while. */
  assertHeld(): void {
    this.lost.throwIfAborted();
    if (this.#until <= this.#options.now()) throw new EditionLeaseLostError(this.#options.resource);
  }

  async end(): Promise<void> {
    this.#ended.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (await this.#pauses())
      try {
        await this.#renew();
      } catch (error) {
        const isAway = error instanceof AppError && error.code === 'store-unavailable';
        if (!isAway || this.#until <= this.#options.now()) this.#lost.abort(error);
      }
  }

  /** Resolves with whether the attempt still runs. */
  #pauses(): Promise<boolean> {
    const { pause, leaseMs } = this.#options;
    return pause(Math.min(BEAT_MS, leaseMs / BEATS_A_LEASE), this.#ended.signal).then(
      () => true,
      () => false,
    );
  }

  async #renew(): Promise<void> {
    const { records, resource, now, leaseMs, token, attempt } = this.#options;
    const until = now() + leaseMs;
    const progress = attempt.walk;
    await records.advance(resource, token, (one) => ({ ...one, progress, lease: { token, until } }));
    this.#until = until;
    this.#logProgress();
  }

  #logProgress(): void {
    const { resource, now, attempt, log } = this.#options;
    if (!attempt.walk || now() - this.#loggedAt < LOG_MS) return;
    this.#loggedAt = now();
    log.info({ resource, ...attempt.walk }, 'an edition is being made');
  }
}
