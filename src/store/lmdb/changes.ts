import { stringKey } from '../keys.ts';
import type { Key } from '../keys.ts';
import type { Commits } from './commits.ts';
import type { Database } from './tables.ts';
import type { Change, Changed } from '../store.ts';

/** The most changes in one transaction: about 10 ms of the event loop. The others wait and share the next flush. */
const TRANSACTION_CHANGES = 256;

/** A change that waits for its transaction. */
interface Wanted {
  readonly key: Key;
  readonly change: Change;
  readonly resolve: (changed: Changed) => void;
  readonly reject: (reason: unknown) => void;
}

/** The outcome of a change inside the transaction. It is reported once the transaction is on disk. */
type Outcome = { readonly changed: Changed } | { readonly refused: unknown };

/**
 * Changes records in bounded transactions. Each change reads its record inside the transaction, which holds the lock
 * of the file, because another process may write to it too. Changes that wait share a transaction, and so its flush.
 */
export class LmdbChanges {
  readonly #table: Database;
  readonly #commits: Commits;
  #waiting: Wanted[] = [];
  #running: Promise<void> | null = null;

  constructor(table: Database, commits: Commits) {
    this.#table = table;
    this.#commits = commits;
  }

  /** See RecordStore.change. */
  change(id: string, change: Change): Promise<Changed> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key: stringKey(Buffer.from(id)), change, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when no change is under way. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** Never rejects: a failure goes to the callers whose changes failed. */
  async #run(): Promise<void> {
    await Promise.resolve(); // changes requested in the same turn join in
    while (this.#waiting.length > 0) {
      const wanted = this.#waiting.splice(0, TRANSACTION_CHANGES);
      try {
        const outcomes = await this.#commits.run(() => wanted.map((one) => this.#apply(one)));
        wanted.forEach((one, at) => tell(one, outcomes[at]));
      } catch (error) {
        for (const { reject } of wanted) reject(error);
      }
    }
    this.#running = null;
  }

  #apply({ key, change }: Wanted): Outcome {
    const before = this.#table.getBinary(key) ?? null;
    let after: ReturnType<Change>;
    try {
      after = change(before);
    } catch (refused) {
      return { refused }; // the other changes of this transaction are not affected
    }
    if (after === 'keep') return { changed: { before, after: before } };
    if (after !== null) this.#table.putSync(key, after);
    else if (before !== null) this.#table.removeSync(key);
    return { changed: { before, after } };
  }
}

function tell({ resolve, reject }: Wanted, outcome: Outcome | undefined): void {
  if (outcome === undefined) throw new TypeError('a change without an outcome');
  if ('changed' in outcome) resolve(outcome.changed);
  else reject(outcome.refused);
}
