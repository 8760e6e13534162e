/** The transactions of an lmdb environment. */
export interface Transactions {
  /** Runs `action` in a write transaction, which is undone when it throws; resolves when committed (visible). */
  childTransaction<T>(action: () => T): Promise<T>;
  /** Resolves when what was committed is on disk. */
  readonly flushed: PromiseLike<unknown>;
}

export interface CommitOptions {
  /** Throws when the file can take nothing: closed, or dead since an I/O error. Called before each transaction. */
  readonly check: () => void;
  /** What the failure of a transaction is told as. */
  readonly faultOf: (error: unknown) => Promise<unknown>;
}

/**
 * The write transactions of the file, one after the other, each on disk before the next one begins: so it is known
 * what a failed commit was about. With two under way lmdb's `flushed` speaks of the later one, and when that one fails
 * it never resolves.
 */
export class Commits {
  readonly #transactions: Transactions;
  readonly #options: CommitOptions;
  #last: Promise<unknown> = Promise.resolve();

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

  async #commit<T>(action: () => T): Promise<T> {
    try {
      this.#options.check(); // lmdb never answers a transaction that it cannot begin
      const result = await this.#transactions.childTransaction(action);
      await this.#transactions.flushed;
      return result;
    } catch (error) {
      throw await this.#options.faultOf(error);
    }
  }
}
