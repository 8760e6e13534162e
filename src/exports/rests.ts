import { setTimeout as sleep } from 'node:timers/promises';
import type { FileStore } from '../store/files.ts';
import type { ExportRequest } from './job.ts';

/** The requests since the rest before that get none: those of clients who look at their exports. */
const FREE = 2;

/** The most that an export rests. */
interface Rest {
  /** For each request. A page takes about one where two cores are all. Milliseconds. */
  readonly requestMs: number;
  /** Behind one batch. Milliseconds. */
  readonly longestMs: number;
  /** How many times as long as it has worked. */
  readonly share: number;
}

/** Text into the database, which has more work with the file than with the rows. */
const OF_TEXT: Rest = { requestMs: 1, longestMs: 60, share: 2 };
/** Parquet: its thread has a batch to work on during a rest. */
const OF_PARQUET: Rest = { requestMs: 1, longestMs: 30, share: 4 };
/** Where the database has the rows and the file, longer rests cost no rows/s. From the embedded store they cost a quarter of them. */
const OF_PARQUET_IN_DATABASE: Rest = { requestMs: 3, longestMs: 80, share: 8 };

/** How many requests this process has begun so far. Those of other processes are not known. */
export type RequestCount = () => number;

interface RestOptions extends Rest {
  readonly begun: RequestCount;
  /** A clock in milliseconds. */
  readonly now?: () => number;
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/**
 * The rests of one export between its batches, which leave processor and store to requests: it would else go on as fast as the
 * two can, and pages would wait for both. Without requests an export never rests.
 */
export class Rests {
  readonly #most: Rest;
  readonly #begun: RequestCount;
  readonly #now: () => number;
  readonly #pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
  #seen: number;
  #since: number;

  constructor({
    requestMs,
    longestMs,
    share,
    begun,
    now = () => performance.now(),
    pause = (ms, signal) => sleep(ms, undefined, { signal }),
  }: RestOptions) {
    this.#most = { requestMs, longestMs, share };
    this.#begun = begun;
    this.#now = now;
    this.#pause = pause;
    this.#seen = begun();
    this.#since = now();
  }

  /**
   * The same values. Rests before each but the first, once the caller is done with the one before and `settled` resolves: work
   * that it has begun would go on during the rest. Rejects as `settled` and `take` do.
   */
  async *between<T>(
    values: AsyncIterable<T>,
    settled: () => Promise<void>,
    signal: AbortSignal,
  ): AsyncGenerator<T, void, undefined> {
    for await (const value of values) {
      yield value;
      if (this.#requests() > 0) await settled();
      await this.take(signal);
    }
  }

  /** Rests for the requests since the rest before. Rejects when the signal is aborted meanwhile. */
  async take(signal: AbortSignal): Promise<void> {
    const worked = this.#now() - this.#since;
    const { requestMs, longestMs, share } = this.#most;
    const ms = Math.floor(Math.min(requestMs * this.#requests(), share * worked, longestMs));
    if (ms > 0) await this.#pause(ms, signal);
    this.#seen = this.#begun();
    this.#since = this.#now();
  }

  /** The requests since the rest before that get one. */
  #requests(): number {
    return Math.max(0, this.#begun() - this.#seen - FREE);
  }
}

/**
 * The rests of an export beside requests. Null: it has none. An export that compresses waits for its threads, which leaves the
 * same room. Text into a folder or a bucket has none, because rests would cost it a third of its rows/s. `clock`: see RestOptions.
 */
export function restsOf(
  { format, compression }: Pick<ExportRequest, 'format' | 'compression'>,
  { isInDatabase }: Pick<FileStore, 'isInDatabase'>,
  clock: Omit<RestOptions, keyof Rest>,
): Rests | null {
  const rests = (most: Rest) => new Rests({ ...most, ...clock });
  if (format === 'parquet') return rests(isInDatabase ? OF_PARQUET_IN_DATABASE : OF_PARQUET);
  return compression === 'none' && isInDatabase ? rests(OF_TEXT) : null;
}
