import type { ItemStore, OnConflict } from '../store/store.ts';
import { BulkWriter } from './bulk.ts';
import { BrokenSource, type SourceRow } from './row.ts';

/** The number of concurrent inserts. One is written to disk while the next one is in transit. */
const PARALLEL = 2;
/**
 * The number of rows between two calls of `progress` while no batch is written (during a series of bad rows).
 */
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
  readonly store: Pick<ItemStore, 'insert'>;
  readonly source: AsyncIterable<SourceRow>;
  readonly onConflict: OnConflict;
  /** No further batch is sent after this is aborted. */
  readonly signal: AbortSignal;
  /** Called from time to time with the counts so far. */
  readonly progress: (sofar: ImportResult) => void;
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
  const writer = new BulkWriter({
    store: options.store,
    onConflict: options.onConflict,
    parallel: options.onConflict === 'replace' ? 1 : PARALLEL,
    onWritten: ({ written, skipped, refused }, places) => {
      count.written += written;
      count.skipped += skipped;
      for (const { index, reason } of refused) fail(places[index] ?? 0, reason);
      options.progress(count);
    },
  });
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
    return count;
  } catch (cause) {
    throw new ImportStopped(count, await settled(writer, cause));
  }
}

/**
 * Waits for pending writes, so that the counts are final. When the source broke, also writes the rows before
 * that. Resolves with the error to report.
 */
async function settled(writer: BulkWriter, cause: unknown): Promise<unknown> {
  if (!(cause instanceof BrokenSource)) {
    await writer.settle();
    return cause;
  }
  try {
    await writer.finish();
    return cause;
  } catch (error) {
    return error; // the store failed as well, which is the more serious error
  }
}
