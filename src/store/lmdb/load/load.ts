import type { Commits } from '../commits.ts';
import type { Key } from '../../keys.ts';
import { IF_NEW, KeyScratch, type Database } from '../tables.ts';
import type { Count, Load, LoadResult, OnConflict, Refuse } from '../../store.ts';
import { RENEW_MS, type LoadMark } from './mark.ts';
import { Appender } from './appender.ts';
import { SortedEntries } from './entries.ts';
import { RowKeys } from './row-keys.ts';
import { otherOf, keyWithOrder } from './other-rows.ts';
import { SortedRuns, type Merged } from './runs.ts';
import { WaitingRows } from './waiting-rows.ts';

/** A transaction holds the file's only write lock: the most rows and bytes in one, about 0.1 s. */
const TRANSACTION_ROWS = 10_000;
const TRANSACTION_BYTES = 8 * 1024 * 1024;
const TRANSACTION_ENTRIES = 100_000;
/** Memory for rows that are out of order, and for the entries of all indexes. Bytes. */
const ROW_RUN_BYTES = 16 * 1024 * 1024;
const INDEX_RUN_BYTES = 32 * 1024 * 1024;

/** The set that a load fills. */
export interface LoadTarget {
  readonly rows: Database;
  /** The table of each index. Indexes that share a table have keys in the order of this list. Valid after `begin`. */
  readonly indexes: readonly Database[];
  /** The number of bytes in front of the id in the keys of rows. */
  readonly prefix?: number;
  /** Makes the keys of a row. Returns why the store refuses it, or null. */
  keyed(document: Uint8Array, keys: RowKeys): string | null;
  /** Whether the entries of an index are wanted: no plan may use an index that a row has made unusable. */
  isUsable(index: number): boolean;
  /** Why a row is refused whose id exists. */
  readonly conflict: string;
  count(): number;
  /** A transaction: the load begins. */
  begin(): void;
  /** A transaction: makes the set whole with so many rows. */
  complete(rows: number): void;
  /** A transaction: takes out rows and entries. Returns whether some are left. */
  clear(): boolean;
}

export interface LoadOptions {
  readonly target: LoadTarget;
  /** The mark of the set, which this process has set. */
  readonly mark: LoadMark;
  readonly commits: Pick<Commits, 'run'>;
  /** For temporary files. */
  readonly directory: string;
  readonly onConflict: OnConflict;
  readonly refuse: Refuse;
  /** See Load. */
  readonly removed: number;
}

/**
 * Fills an empty set. Rows in ascending order of id are appended as they come. The others wait in sorted runs for all
 * rows to come. The entries of each index are sorted and appended at the end. All this happens under the mark of the
 * set, so nobody sees any of it before the last transaction.
 */
export class LmdbLoad implements Load {
  readonly removed: Count;
  readonly #options: LoadOptions;
  readonly #indexes: readonly SortedEntries[];
  readonly #others: SortedRuns;
  readonly #renewal: NodeJS.Timeout;
  readonly #keys: RowKeys;
  readonly #appended: Appender;
  #rows = new WaitingRows();
  /** The key of the last row that was appended. Empty before the first. */
  readonly #last = new KeyScratch();
  /** The transaction under way. Never rejects: see `#failure`. */
  #writing: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | null = null;
  /** Rows in the set. */
  #added = 0;
  /** Rows that replaced an earlier one. */
  #replaced = 0;
  #skipped = 0;

  constructor(options: LoadOptions) {
    const { target, directory } = options;
    this.#options = options;
    this.removed = { rows: options.removed, is: 'exact' };
    this.#appended = new Appender(target.rows);
    this.#keys = new RowKeys(target.indexes.length, target.prefix);
    this.#others = new SortedRuns(directory, ROW_RUN_BYTES);
    const runBytes = Math.floor(INDEX_RUN_BYTES / Math.max(1, target.indexes.length));
    this.#indexes = target.indexes.map((table) => new SortedEntries(table, directory, runBytes));
    // A process with a slow source must not look as if it had ended.
    this.#renewal = setInterval(() => this.#start(() => undefined), RENEW_MS);
    this.#renewal.unref();
  }

  /** See Load. */
  add(document: Uint8Array, at: number): void | Promise<void> {
    try {
      return this.#add(document, at);
    } catch (error) {
      this.#failure ??= { error }; // a temporary file could not be written
      throw error;
    }
  }

  #add(document: Uint8Array, at: number): void | Promise<void> {
    const keys = this.#keys;
    const refusal = this.#options.target.keyed(document, keys);
    if (refusal !== null) {
      this.#options.refuse(at, refusal);
    } else if (!keys.isAbove(this.#last)) {
      const key = keyWithOrder(keys.id, at);
      this.#others.add(key, 0, key.length, document);
    } else {
      this.#last.copy(keys.bytes, 0, keys.idEnd);
      this.#link();
      this.#rows.add(document, keys.bytes, keys.idEnd);
      if (this.#rows.count >= TRANSACTION_ROWS || this.#rows.bytes >= TRANSACTION_BYTES)
        return this.#append();
    }
  }

  /** See Load. */
  async finish(): Promise<LoadResult> {
    await this.#append();
    const others = this.#others.merged();
    while (await this.#inTransaction(() => this.#addOthers(others)));
    this.#others.close();
    for (const [at, index] of this.#indexes.entries()) {
      if (this.#options.target.isUsable(at))
        while (await this.#inTransaction(() => index.append(TRANSACTION_ENTRIES)));
      index.close();
    }
    clearInterval(this.#renewal);
    await this.#inTransaction(() => {
      this.#options.target.complete(this.#added);
      this.#options.mark.remove();
    });
    return { written: this.#added + this.#replaced, skipped: this.#skipped };
  }

  /** See Load. */
  async abandon(): Promise<void> {
    clearInterval(this.#renewal);
    for (const runs of [this.#others, ...this.#indexes]) runs.close();
    await this.#writing;
    this.#failure = null;
    const { target, mark } = this.#options;
    while (await this.#inTransaction(() => target.clear()));
    await this.#inTransaction(() => {
      target.complete(0);
      mark.remove();
    });
  }

  /** Starts to write the rows that wait. Resolves when those before them are on disk, so that reading goes on beside. */
  async #append(): Promise<void> {
    const rows = this.#rows;
    this.#rows = new WaitingRows();
    await this.#writing;
    this.#throwFailure();
    this.#added += rows.count;
    this.#start(() => rows.writeTo(this.#appended));
  }

  /** In a transaction: writes the next of the rows that came out of order. False when there are no more. */
  #addOthers(others: Iterator<Merged, void>): boolean {
    let bytes = 0;
    for (let rows = 0; rows < TRANSACTION_ROWS && bytes < TRANSACTION_BYTES; rows++) {
      const next = others.next();
      if (next.done === true) return false;
      const { id, at, document } = otherOf(next.value);
      bytes += document.length;
      this.#addOther(id, at, document);
    }
    return true;
  }

  #addOther(id: Key, at: number, document: Uint8Array): void {
    const { target, onConflict, refuse } = this.#options;
    if (target.rows.putSync(id, document, IF_NEW)) {
      this.#added++;
      this.#keyAgain(document);
      this.#link();
    } else if (onConflict === 'skip') {
      this.#skipped++;
    } else if (onConflict === 'fail') {
      refuse(at, target.conflict);
    } else {
      const before = target.rows.getBinary(id);
      if (!before) throw new Error('a row that exists cannot be read');
      this.#keyAgain(before);
      this.#unlink();
      target.rows.putSync(id, document);
      this.#replaced++;
      this.#keyAgain(document);
      this.#link();
    }
  }

  /** Makes the keys of a row that was keyed before. */
  #keyAgain(document: Uint8Array): void {
    const refusal = this.#options.target.keyed(document, this.#keys);
    if (refusal !== null) throw new Error(`a stored row cannot be read: ${refusal}`);
  }

  /** Adds the entries of the row that was keyed last. */
  #link(): void {
    const { bytes, ends } = this.#keys;
    let start = this.#keys.idEnd;
    for (let index = 0; index < ends.length; index++) {
      const end = ends[index] ?? start;
      if (end > start) this.#indexes[index]?.add(bytes, start, end);
      start = end;
    }
  }

  /** Takes them back. */
  #unlink(): void {
    const { bytes, ends } = this.#keys;
    for (let index = 0; index < ends.length; index++) {
      const [start, end] = [this.#keys.startOf(index), ends[index] ?? 0];
      if (end > start) this.#indexes[index]?.remove(bytes, start, end);
    }
  }

  /** Runs a transaction under the mark, after those before it. */
  async #inTransaction<T>(action: () => T): Promise<T> {
    await this.#writing;
    this.#throwFailure();
    return this.#options.commits.run(() => {
      this.#options.mark.renew();
      return action();
    });
  }

  /** The same, beside what follows. The next call that waits for it rejects when it fails. */
  #start(action: () => void): void {
    this.#writing = this.#inTransaction(action).catch((error: unknown) => {
      this.#failure ??= { error };
    });
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
