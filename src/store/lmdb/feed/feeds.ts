import { reasonOf } from '../../../thrown.ts';
import { LmdbFeed, type FeedSet, type LmdbFeedOptions } from './feed.ts';
import type { ChangeLog } from './log.ts';
import { LogWatch } from './watch.ts';

export interface LmdbFeedsOptions extends Omit<LmdbFeedOptions, 'watch'> {
  /** Called before each look at the file. Throws when it cannot be read. */
  readonly begin: () => void;
  /** Told in a sentence what went wrong while nobody waited for it. */
  readonly onWarning: (message: string) => void;
}

/** A set that has a log, and its number of rows. */
export interface LoggedSet {
  readonly set: number;
  readonly rows: number;
}

/** The feeds of a file. They share its log of changes. */
export class LmdbFeeds {
  readonly #options: LmdbFeedsOptions;
  readonly #watch = new LogWatch();
  #isOpen = true;
  #pruning: Promise<void> = Promise.resolve();

  constructor(options: LmdbFeedsOptions) {
    this.#options = options;
  }

  get log(): ChangeLog {
    return this.#options.log;
  }

  of(set: FeedSet): LmdbFeed {
    return new LmdbFeed(set, { ...this.#options, watch: this.#watch });
  }

  /** To be called after each transaction of this process. */
  committed(): void {
    this.#watch.committed();
  }

  /**
   * Removes the records that are not to be kept, in the background and in bounded transactions: a process before this one
   * may have left many. A start that finds none needs no transaction.
   */
  pruneLater(sets: () => readonly LoggedSet[]): void {
    this.#pruning = this.#prune(sets).catch((error: unknown) =>
      this.#options.onWarning(`old changes still take space: ${reasonOf(error)}`),
    );
  }

  /** Resolves when nothing is being pruned. */
  async stop(): Promise<void> {
    this.#isOpen = false;
    await this.#pruning;
  }

  /** Wakes all readers. To be called when the file can no longer be read: their next look tells them. */
  close(): void {
    this.#watch.close();
  }

  async #prune(sets: () => readonly LoggedSet[]): Promise<void> {
    const { begin, log, commits } = this.#options;
    begin();
    for (const { set, rows } of sets().filter((one) => log.canPrune(one.set, one.rows)))
      while (this.#isOpen && (await commits.run(() => log.prune(set, rows))));
  }
}
