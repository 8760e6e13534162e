import type { Count, InsertResult, OwnedCollection, Load, OnConflict } from '../store/store.ts';
import { BrokenSource, type SourceRow } from './row.ts';

/** A batch is written when it reaches this many rows or bytes. */
const BATCH_ROWS = 2_000;
const BATCH_BYTES = 4 * 1024 * 1024;
/** The number of concurrent inserts. One is written to disk while the next one is in transit. */
const PARALLEL = 2;
/** The number of rows between two calls of `progress` while no batch is written (during a series of bad rows). */
const PROGRESS_ROWS = 4_096;

/** The counts of an import. When the run was completed, `read` is the sum of the others. */
export interface ImportResult {
  /** Rows found in the source, good and bad. */
  readonly read: number;
  /** Rows inserted or replaced. They are durable. */
  readonly written: number;
  /** Rows that were not written because their id was already in the store. */
  readonly skipped: number;
  /** Rows that are not valid items, or that the store refused. */
  readonly failed: number;
}

export interface ImportOptions {
  /** With `load`, an empty collection is filled by it. Its rows then appear when the source has ended. */
  readonly store: Pick<OwnedCollection, 'insert' | 'load' | 'postponeIndexes'>;
  readonly source: AsyncIterable<SourceRow>;
  readonly onConflict: OnConflict;
  /**
   * Present: a load replaces the rows that the store has. Called with their number when it has begun. The store must
   * have `load`.
   */
  readonly onRemoved?: (removed: Count) => void;
  /** Called when the indexes of the store will be made after the rows. */
  readonly onPostponed?: () => void;
  /** No further batch is sent after this is aborted. */
  readonly signal: AbortSignal;
  /** Called from time to time with the counts so far. */
  readonly progress: (count: ImportResult) => void;
  /**
   * Called for each bad row, with its position in the source. Rows that the store refuses are reported later
   * than others.
   */
  readonly report: (at: number, reason: string) => void;
}

/** The run ended early. `cause` is the reason. `result` counts what is durable nevertheless. */
export class ImportStopped extends Error {
  override readonly name = 'ImportStopped';
  readonly result: ImportResult;

  constructor(result: ImportResult, cause: unknown) {
    super(`the import stopped with ${result.written} rows durable`, { cause });
    this.result = result;
  }
}

/**
 * Writes the rows of a source into a store, in batches. Bad rows are reported and counted, and the run
 * continues. Rejects with ImportStopped when the source breaks (the rows before that are written), the store
 * fails, or `signal` is aborted.
 *
 * When two rows have the same id, `skip` and `fail` keep the earlier one. Within a few thousand rows of each
 * other, either of them may be kept. `replace` always keeps the later one.
 */
export async function importItems(options: ImportOptions): Promise<ImportResult> {
  const count = { read: 0, written: 0, skipped: 0, failed: 0 };
  const fail = (at: number, reason: string): void => {
    count.failed++;
    options.report(at, reason);
  };
  const addTo = (written: number, skipped: number): void => {
    count.written += written;
    count.skipped += skipped;
    options.progress(count);
  };
  const batches = () =>
    new BatchWriter(options, ({ written, skipped, refused }, positions) => {
      for (const { index, reason } of refused) fail(positions[index] ?? 0, reason);
      addTo(written, skipped);
    });
  const { onRemoved } = options;
  const replaces = onRemoved !== undefined;
  const load = await options.store.load?.(options.onConflict, fail, replaces).catch((cause: unknown) => {
    throw new ImportStopped(count, cause);
  });
  if (load) onRemoved?.(load.removed);
  let makeIndexes = load ? null : await options.store.postponeIndexes?.();
  if (makeIndexes) options.onPostponed?.();
  const makeOnce = async (): Promise<void> => {
    const make = makeIndexes;
    makeIndexes = null;
    await make?.();
  };
  const writer = load ? new LoadWriter(load, addTo) : batches();
  try {
    for await (const row of options.source) {
      options.signal.throwIfAborted();
      if (++count.read % PROGRESS_ROWS === 0) options.progress(count);
      if ('problem' in row) {
        fail(row.at, row.problem);
      } else {
        const full = writer.add(row.at, row.item);
        if (full) await full; // avoids a promise for every row
      }
    }
    await writer.finish();
    await makeOnce();
    return count;
  } catch (cause) {
    throw new ImportStopped(count, await settle(writer, cause, makeOnce));
  }
}

/**
 * Waits for pending inserts, so that the counts are final. When the source broke, also writes the rows before
 * that. Makes the indexes that were postponed. Resolves with the error to report.
 */
async function settle(writer: Writer, cause: unknown, makeIndexes: () => Promise<void>): Promise<unknown> {
  try {
    await (cause instanceof BrokenSource ? writer.finish() : writer.settle());
    await makeIndexes();
    return cause;
  } catch (error) {
    return error; // the store failed as well, which is the more serious error
  }
}

/** Writes the rows of a run. */
interface Writer {
  /** Adds a row. When it returns a promise, the next row waits for that. */
  add(at: number, item: Uint8Array): void | Promise<void>;
  /** Writes the remaining rows. Resolves when every row is durable or refused. */
  finish(): Promise<void>;
  /** Ends the run early. Resolves when the rows that were sent are durable or refused. */
  settle(): Promise<void>;
}

/** Rows for one insert, and their positions in the source. */
class Batch {
  readonly items: Uint8Array[] = [];
  readonly positions: number[] = [];
  bytes = 0;

  get isFull(): boolean {
    return this.items.length >= BATCH_ROWS || this.bytes >= BATCH_BYTES;
  }
}

/**
 * Gathers rows into batches and inserts up to PARALLEL of them at the same time. With `replace` it inserts one
 * at a time, so that a later row replaces an earlier one. It holds one batch more, which is being filled. After
 * the store has failed once, nothing more is written and every call rejects with its error.
 */
class BatchWriter implements Writer {
  readonly #options: ImportOptions;
  readonly #onWritten: (result: InsertResult, positions: readonly number[]) => void;
  readonly #parallel: number;
  readonly #pending = new Set<Promise<void>>();
  #batch = new Batch();
  #failure: { readonly error: unknown } | null = null;

  /** `onWritten` receives the store's result for each batch, and the positions of its rows. */
  constructor(
    options: ImportOptions,
    onWritten: (result: InsertResult, positions: readonly number[]) => void,
  ) {
    this.#options = options;
    this.#onWritten = onWritten;
    this.#parallel = options.onConflict === 'replace' ? 1 : PARALLEL;
  }

  /** Adds a row. When the row fills a batch, the promise resolves once that batch is being written. */
  add(at: number, item: Uint8Array): void | Promise<void> {
    this.#batch.items.push(item);
    this.#batch.positions.push(at);
    this.#batch.bytes += item.length;
    return this.#batch.isFull ? this.#send() : undefined;
  }

  /** Writes the remaining rows. Resolves when every row is durable or refused. */
  async finish(): Promise<void> {
    if (this.#batch.items.length > 0) await this.#send();
    await this.settle();
    this.#throwFailure();
  }

  /**
   * Resolves when no insert is pending, whether it succeeded or failed. Rows that were not sent stay unsent.
   */
  async settle(): Promise<void> {
    await Promise.all(this.#pending);
  }

  async #send(): Promise<void> {
    const batch = this.#batch;
    this.#batch = new Batch();
    while (this.#pending.size >= this.#parallel) await Promise.race(this.#pending);
    this.#throwFailure();
    const write = this.#write(batch).finally(() => this.#pending.delete(write));
    this.#pending.add(write);
  }

  /** Writes a batch. Never rejects: the next call throws the error. */
  async #write(batch: Batch): Promise<void> {
    const { store, onConflict } = this.#options;
    try {
      this.#onWritten(await store.insert(batch.items, onConflict), batch.positions);
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}

/** Gives rows to a load. */
class LoadWriter implements Writer {
  readonly #load: Load;
  readonly #onWritten: (written: number, skipped: number) => void;
  #hasEnded = false;

  constructor(load: Load, onWritten: (written: number, skipped: number) => void) {
    this.#load = load;
    this.#onWritten = onWritten;
  }

  add(at: number, item: Uint8Array): void | Promise<void> {
    return this.#load.add(item, at);
  }

  async finish(): Promise<void> {
    this.#hasEnded = true;
    try {
      const { written, skipped } = await this.#load.finish();
      this.#onWritten(written, skipped);
    } catch (error) {
      await this.#load.abandon().catch(() => undefined); // the store undoes it when it is opened next
      throw error;
    }
  }

  /** Keeps the rows so far, as the other writer does. */
  async settle(): Promise<void> {
    if (!this.#hasEnded) await this.finish();
  }
}
