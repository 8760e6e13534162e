import type { LmdbFailure } from './failures.ts';

/** The transactions of an lmdb environment. */
export interface Transactions {
  /**
   * Runs `action` in a write transaction, which is undone when it throws; resolves when committed. Without lmdb's
   * overlapping syncs that is after both syncs, of the pages and of the meta page.
   */
  childTransaction<T>(action: () => T): Promise<T>;
}

export interface CommitOptions {
  /** Throws when the file can take nothing: closed, or lost. Called before each transaction. */
  readonly check: () => void;
  /** What the failure of a transaction is told as. */
  readonly faultOf: (error: unknown) => Promise<unknown>;
  /** Called when a transaction could not begin: lmdb keeps its lock then, and no other one ever begins. */
  readonly onLost: (failure: LmdbFailure) => void;
}

/** A transaction that is under way. */
interface Attempt {
  hasBegun: boolean;
  failure: LmdbFailure | null;
  /** Rejects the transaction. */
  readonly refuse: (reason: LmdbFailure) => void;
}

/**
 * The write transactions of the file, one after the other, each on disk before the next one begins: so it is known
 * what a failed commit was about.
 */
export class Commits {
  readonly #transactions: Transactions;
  readonly #options: CommitOptions;
  #last: Promise<unknown> = Promise.resolve();
  #underWay: Attempt | null = null;

  constructor(transactions: Transactions, options: CommitOptions) {
    this.#transactions = transactions;
    this.#options = options;
  }

  /**
   * Runs `action`, which must be synchronous, in a write transaction when its turn comes; resolves with what it returns
   * once that is on disk. Rejects with what the failure is told as; nothing is written then.
   */
  run<T>(action: () => T): Promise<T> {
    const result = this.#last.then(() => this.#commit(action));
    this.#last = result.catch(() => undefined); // its caller meets the failure; the next one has nothing to do with it
    return result;
  }

  /** Resolves when everything asked for so far is done. */
  async idle(): Promise<void> {
    await this.#last;
  }

  /** Takes down why the transaction under way fails (see hearFailures). */
  failed(failure: LmdbFailure): void {
    const attempt = this.#underWay;
    if (attempt) attempt.failure = failure;
    if (attempt?.hasBegun) return; // its promise rejects
    this.#options.onLost(failure);
    attempt?.refuse(failure);
  }

  async #commit<T>(action: () => T): Promise<T> {
    try {
      this.#options.check();
      return await this.#attempt(action);
    } catch (error) {
      throw await this.#options.faultOf(this.#underWay?.failure ?? error);
    } finally {
      this.#underWay = null;
    }
  }

  #attempt<T>(action: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const attempt: Attempt = { hasBegun: false, failure: null, refuse: reject };
      this.#underWay = attempt;
      const begin = (): T => {
        attempt.hasBegun = true;
        return action();
      };
      this.#transactions.childTransaction(begin).then(resolve, reject);
    });
  }
}
