import { Turns } from '../../turns.ts';
import type { LmdbFailure } from './failures.ts';

/** The transactions of an lmdb environment. */
export interface Transactions {
  /**
   * Runs `action` in a write transaction, which is undone when `action` throws. Resolves when committed. Without
   * lmdb's overlapping syncs, that is after both syncs: of the pages and of the meta page.
   */
  childTransaction<T>(action: () => T): Promise<T>;
}

export interface CommitOptions {
  /** Throws when the file cannot be written: closed, or lost. Called before each transaction. */
  readonly check: () => void;
  /** Translates the failure of a transaction for the callers. */
  readonly faultOf: (error: unknown) => Promise<unknown>;
  /** Called when a transaction could not begin: lmdb then keeps its lock, and no other transaction ever begins. */
  readonly onLost: (failure: LmdbFailure) => void;
  /** Called after each transaction. */
  readonly onCommitted?: () => void;
}

/** The transaction under way. */
interface Attempt {
  hasBegun: boolean;
  failure: LmdbFailure | null;
  /** Rejects the transaction. */
  readonly refuse: (reason: LmdbFailure) => void;
}

/**
 * The write transactions of the file, one after another. Each is on disk before the next one begins, so it is known
 * which transaction a failed commit belongs to.
 */
export class Commits {
  readonly #transactions: Transactions;
  readonly #options: CommitOptions;
  readonly #turns = new Turns();
  #underWay: Attempt | null = null;

  constructor(transactions: Transactions, options: CommitOptions) {
    this.#transactions = transactions;
    this.#options = options;
  }

  /**
   * Runs `action`, which must be synchronous, in a write transaction when its turn comes. Resolves with the result
   * once the transaction is on disk. Rejects with the error that `faultOf` returns; nothing is written then.
   */
  run<T>(action: () => T): Promise<T> {
    return this.#turns.take(() => this.#commit(action));
  }

  /** Resolves when everything requested so far is done. */
  idle(): Promise<void> {
    return this.#turns.idle();
  }

  /** Records why the transaction under way fails (see hearFailures). */
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
      const result = await this.#attempt(action);
      this.#options.onCommitted?.();
      return result;
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
