import { setImmediate as turn } from 'node:timers/promises';
import type { Connection } from '../file/connection.ts';
import type { Epochs } from '../file/epochs.ts';
import { retryBusy } from '../file/errors.ts';
import type { StoreFile } from '../file/file.ts';

/** How long actions may share a transaction, which holds the event loop and the file's only write lock. Milliseconds. */
const TRANSACTION_MS = 8;

interface WritesOptions {
  readonly connection: Connection;
  readonly file: StoreFile;
  readonly epochs: Epochs;
  /** Called after each commit. What it returns is awaited before the next transaction. */
  readonly onCommitted: () => void | Promise<void>;
}

interface QueuedWrite {
  readonly action: () => unknown;
  /** Does not share a transaction, and is not in one. */
  readonly isAlone: boolean;
  /** See StoreFile.checkWritable. */
  readonly isSmall: boolean;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** Called when a write is durable, or could not be made so. */
type Settle = (failure: { readonly error: unknown } | null) => void;

/**
 * The writes of this process, one after another. Those that wait share a transaction and a sync. A transaction is
 * committed without a sync; then one sync at a time makes durable what was committed before it. A write that fails is
 * undone alone.
 */
export class Writes {
  readonly #options: WritesOptions;
  readonly #queue: QueuedWrite[] = [];
  #working: Promise<void> | null = null;
  #unsynced: Settle[] = [];
  #syncing: Promise<void> | null = null;

  constructor(options: WritesOptions) {
    this.#options = options;
  }

  /**
   * Runs a synchronous action in a transaction. Resolves when that is durable. Rejects with its error, all undone. `small`:
   * see StoreFile.checkWritable.
   */
  run<T>(action: () => T, kind: 'adds' | 'small' = 'adds'): Promise<T> {
    return this.#ask(action, false, kind === 'small');
  }

  /** Runs work in no transaction, while nothing else is written. Resolves with its result. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#ask(work, true, true);
  }

  /** Resolves when nothing is written or made durable any more. */
  async idle(): Promise<void> {
    while (this.#working ?? this.#syncing) {
      await this.#working;
      await this.#syncing;
    }
  }

  #ask<T>(action: () => T | Promise<T>, isAlone: boolean, isSmall: boolean): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ action, isAlone, isSmall, resolve: resolve as QueuedWrite['resolve'], reject });
      this.#working ??= this.#work();
    });
  }

  async #work(): Promise<void> {
    await Promise.resolve(); // writes requested in the same turn join in
    for (let first = this.#queue[0]; first; first = this.#queue[0]) {
      if (first.isAlone) await this.#runAlone();
      else await this.#transaction();
    }
    this.#working = null;
  }

  async #runAlone(): Promise<void> {
    const { action, resolve, reject } = this.#next();
    try {
      resolve(await action());
    } catch (error) {
      reject(this.#options.file.faultOf(error));
    }
  }

  async #transaction(): Promise<void> {
    const { file, onCommitted } = this.#options;
    const taken: QueuedWrite[] = [];
    try {
      file.checkWritable(this.#queue[0]?.isSmall === true);
      const settled = await retryBusy(() => this.#commit(taken));
      this.#unsynced.push(...settled);
      this.#syncing ??= this.#sync();
      await onCommitted();
      await turn(); // others of the process go on
    } catch (error) {
      const fault = file.faultOf(error);
      if (taken.length === 0) taken.push(this.#next());
      for (const { reject } of taken) reject(fault);
    }
  }

  /** Runs as many actions as fit into a transaction. Returns the functions to call when they are durable. */
  #commit(taken: QueuedWrite[]): Settle[] {
    const { connection, epochs } = this.#options;
    return connection.transaction(() => {
      epochs.begin();
      const end = performance.now() + TRANSACTION_MS;
      const settled: Settle[] = [];
      while (this.#queue[0]?.isAlone === false && (taken.length === 0 || performance.now() < end)) {
        const wanted = this.#next();
        taken.push(wanted);
        settled.push(this.#attempt(wanted));
      }
      return settled;
    });
  }

  /** Runs an action. What it wrote before it failed is undone. */
  #attempt({ action, resolve, reject }: QueuedWrite): Settle {
    const { connection } = this.#options;
    connection.run('savepoint action');
    try {
      const result = action();
      connection.run('release action');
      return (failure) => (failure ? reject(failure.error) : resolve(result));
    } catch (error) {
      if (!connection.isInTransaction) throw error; // SQLite has undone all of it
      connection.run('rollback to action');
      connection.run('release action');
      const fault = this.#options.file.faultOf(error);
      return () => reject(fault);
    }
  }

  async #sync(): Promise<void> {
    while (this.#unsynced.length > 0) {
      const waiting = this.#unsynced;
      this.#unsynced = [];
      try {
        await this.#options.file.sync();
        for (const settle of waiting) settle(null);
      } catch (error) {
        const failure = { error: this.#options.file.faultOf(error) };
        for (const settle of waiting) settle(failure);
      }
    }
    this.#syncing = null;
  }

  #next(): QueuedWrite {
    const next = this.#queue.shift();
    if (!next) throw new TypeError('no write waits');
    return next;
  }
}
