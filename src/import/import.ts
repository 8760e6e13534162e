import type { Count, FilledRow, HowToFill, OwnedCollection, OnConflict } from '../store/store.ts';
import { BrokenSource, type SourceRows } from './row.ts';
import type { Ends } from './sum-row.ts';
import { countOf } from '../terminal/text.ts';

/**
 * A batch is written when it reaches this many rows or bytes. MongoDB takes 10,000 rows in two thirds of the time of five
 * times 2,000.
 */
const BATCH_ROWS = 10_000;
/** The same number of a source that may never end: rows wait for it. */
const ENDLESS_ROWS = 2_000;
const BATCH_BYTES = 4 * 1024 * 1024;
/** The number of rows between two calls of `progress` while no batch is written (during a series of bad rows). */
const PROGRESS_ROWS = 4_096;

/** The counts of an import. When the run was completed, `read` is the sum of the others. */
export interface ImportResult {
  readonly read: number;
  /** Rows inserted or replaced. They are durable. */
  readonly written: number;
  /** Rows whose id was already in the store. */
  readonly skipped: number;
  /** Rows that are not valid items, or that the store refused. */
  readonly failed: number;
  /** Of a sync: rows that the store has as they are, and rows of the store that the source lacks, which were removed. */
  readonly unchanged?: number;
  readonly removed?: number;
}

/** The part of a store that an import uses. */
export interface ImportedStore extends Pick<OwnedCollection, 'fill' | 'count'> {
  /** What a sync reads and removes. */
  readonly rows?: Pick<OwnedCollection, 'read' | 'remove' | 'describe'>;
}

export interface ImportOptions {
  /** Opens the store. Called with the first row that can be written: nothing is made or removed before. */
  readonly open: () => Promise<Pick<ImportedStore, 'fill'>>;
  readonly source: SourceRows;
  readonly onConflict: OnConflict;
  /** Whether the source may never end. Its rows then appear as they come, and need the indexes. */
  readonly isEndless?: boolean;
  /** Present: the rows that the store has are removed. Called with their number. */
  readonly onRemoved?: ((removed: Count) => void) | undefined;
  /** Called when the indexes of the store will be made after the rows. */
  readonly onPostponed?: (() => void) | undefined;
  /** No further batch is sent after this is aborted. */
  readonly signal: AbortSignal;
  /** Called from time to time with the counts so far. */
  readonly progress: (count: ImportResult) => void;
  /** Called for each bad row, with its position in the source, and the field that has the fault. */
  readonly report: (at: number, reason: string, of?: string) => void;
  /** Called with the rows at the ends of the source, once it has come to its end. */
  readonly onEnd?: (ends: Ends) => void;
}

/** The run ended early. `cause` is the reason. `result` counts what is durable nevertheless. */
export class ImportStop extends Error {
  override readonly name = 'ImportStop';
  readonly result: ImportResult;

  constructor(result: ImportResult, cause: unknown) {
    super(`the import stopped with ${countOf(result.written, 'row')} durable`, { cause });
    this.result = result;
  }
}

/**
 * Writes the rows of a source into a store, in batches. Bad rows are reported and counted, and the run goes on. Rejects with
 * ImportStop when the source breaks, the store fails, or `signal` is aborted. Rejects with the error itself when nothing
 * was begun.
 */
export async function importRows(options: ImportOptions): Promise<ImportResult> {
  const { signal, progress, onConflict, onRemoved, isEndless, onPostponed } = options;
  const count = { read: 0, written: 0, skipped: 0, failed: 0 };
  const refuse = (at: number, reason: string, of?: string): void => {
    count.failed++;
    options.report(at, reason, of);
  };
  const onWritten: HowToFill['onWritten'] = ({ written, skipped }) => {
    count.written += written;
    count.skipped += skipped;
    progress(count);
  };
  let hasBegun = false;
  try {
    const batches = batchesOf(options, count, refuse);
    const { done } = await batches.next();
    if (done) return count;
    const store = await options.open();
    hasBegun = true;
    await store.fill(batches, {
      onConflict,
      refuse,
      onRemoved,
      isEndless,
      onWritten,
      onPostponed,
      signal,
    });
    return count;
  } catch (cause) {
    if (!hasBegun && !(cause instanceof BrokenSource || signal.aborted)) throw cause;
    throw new ImportStop(count, cause);
  }
}

/**
 * The rows of a source in batches. An empty one comes with the first row that can be written. Rejects as the source does,
 * or with the reason of the signal, when the rows that were read before have come.
 */
async function* batchesOf(
  { source, signal, progress, onEnd, isEndless }: ImportOptions,
  count: { -readonly [Name in keyof ImportResult]: number },
  refuse: (at: number, reason: string, of?: string) => void,
): AsyncGenerator<readonly FilledRow[], void, undefined> {
  const most = isEndless ? ENDLESS_ROWS : BATCH_ROWS;
  let batch: FilledRow[] = [];
  let before: readonly FilledRow[] = batch;
  let first: FilledRow | undefined;
  let bad: { readonly at: number; readonly problem: string; readonly read: number } | undefined;
  let bytes = 0;
  let broken: { readonly error: unknown } | null = null;
  try {
    for await (const rows of source)
      for (const row of rows) {
        signal.throwIfAborted();
        if (++count.read % PROGRESS_ROWS === 0) progress(count);
        if ('problem' in row) {
          refuse(row.at, row.problem, row.of);
          bad = { at: row.at, problem: row.problem, read: count.read };
          continue;
        }
        if (!first) {
          first = row;
          yield [];
        }
        batch.push(row);
        bytes += row.item.length;
        if (batch.length < most && bytes < BATCH_BYTES) continue;
        yield batch;
        before = batch;
        batch = [];
        bytes = 0;
      }
  } catch (error) {
    broken = { error };
  }
  if (batch.length > 0) yield batch;
  if (broken) throw broken.error;
  const last = batch.at(-1) ?? before.at(-1);
  onEnd?.({ first, last, ...(bad?.read === count.read && { lastProblem: bad }) });
}
