import type { ItemStore, OnConflict } from '../store/store.ts';
import { BulkWriter } from './bulk.ts';
import { BrokenSource, type SourceRow } from './row.ts';

/** Inserts under way at once: one is on the store's disk while the next one travels. */
const PARALLEL = 2;
/** Rows between two calls of `progress` when no batch is written (a run of bad rows). */
const PROGRESS_ROWS = 4_096;

/** What came of the rows: `read` is the sum of the others when the run went to its end. */
export interface ImportResult {
  /** Rows found in the source, good and bad. */
  readonly read: number;
  /** Rows new or replaced; durable. */
  readonly written: number;
  /** Rows left as they were in the store because their id was there. */
  readonly skipped: number;
  /** Rows that are no items, or that the store refused. */
  readonly failed: number;
}

export interface ImportOptions {
  readonly store: Pick<ItemStore, 'insert'>;
  readonly source: AsyncIterable<SourceRow>;
  readonly onConflict: OnConflict;
  /** Once aborted, no further batch is sent. */
  readonly signal: AbortSignal;
  /** Called now and then with the counts so far. */
  readonly progress: (sofar: ImportResult) => void;
  /** Called for each bad row, with its place in the source. Rows that the store refuses come later than others. */
  readonly report: (at: number, reason: string) => void;
}

/** The run ended early. `cause` is why; `result` counts what is durable nevertheless. */
export class ImportStopped extends Error {
  override readonly name = 'ImportStopped';
  readonly result: ImportResult;

  constructor(result: ImportResult, cause: unknown) {
    super(`the import stopped with ${result.written} rows durable`, { cause });
    this.result = result;
  }
}

/**
 * Writes the rows of a source into a store, in batches. Bad rows are reported and counted, and the run goes on.
 * ImportStopped when the source breaks (the rows before are written), the store fails, or `signal` is aborted.
 *
 * With `skip` and `fail`, of two rows with one id the earlier is kept, unless both are within a few thousand rows of each
 * other: then one of them is. With `replace` it is always the later.
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
        if (full) await full; // without a promise for every row
      }
    }
    await writer.finish();
    return count;
  } catch (cause) {
    throw new ImportStopped(count, await settled(writer, cause));
  }
}

/** Ends what is under way, so that the counts are final; of a broken source, the rows before are written too. */
async function settled(writer: BulkWriter, cause: unknown): Promise<unknown> {
  if (!(cause instanceof BrokenSource)) {
    await writer.settle();
    return cause;
  }
  try {
    await writer.finish();
    return cause;
  } catch (error) {
    return error; // the store failed on the way: that is the greater trouble
  }
}
