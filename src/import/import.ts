import type { Count, InsertResult, OwnedCollection, Load, OnConflict } from '../store/store.ts';
import { BrokenSource, type SourceRow } from './row.ts';
import { countOf } from '../terminal/text.ts';

/** A batch is written when it reaches this many rows or bytes. */
const BATCH_ROWS = 2_000;
const BATCH_BYTES = 4 * 1024 * 1024;
/** The number of concurrent inserts. One is written to disk while the next one is in transit. */
const PARALLEL = 2;
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
}

/** The part of a store that an import uses. */
export type ImportedStore = Pick<OwnedCollection, 'insert' | 'load' | 'postponeIndexes' | 'count' | 'clear'>;

export interface ImportOptions {
  /** Opens the store. Called with the first row that can be written: nothing is made or removed before. */
  readonly open: () => Promise<Omit<ImportedStore, 'count'>>;
  readonly source: AsyncIterable<SourceRow>;
  readonly onConflict: OnConflict;
  /** Whether the source may never end. Its rows then appear as they come, and need the indexes. */
  readonly isEndless?: boolean;
  /** Present: the rows that the store has are removed. Called with their number. */
  readonly onRemoved?: ((removed: Count) => void) | undefined;
  /** Called when the indexes of the store will be made after the rows. */
  readonly onPostponed?: () => void;
  /** No further batch is sent after this is aborted. */
  readonly signal: AbortSignal;
  /** Called from time to time with the counts so far. */
  readonly progress: (count: ImportResult) => void;
  /** Called for each bad row, with its position in the source, and the field that has the fault. */
  readonly report: (at: number, reason: string, of?: string) => void;
}

/** The run ended early. `cause` is the reason. `result` counts what is durable nevertheless. */
export class ImportStopped extends Error {
  override readonly name = 'ImportStopped';
  readonly result: ImportResult;

  constructor(result: ImportResult, cause: unknown) {
    super(`the import stopped with ${countOf(result.written, 'row')} durable`, { cause });
    this.result = result;
  }
}

/**
 * Writes the rows of a source into a store, in batches. Bad rows are reported and counted, and the run
 * continues. Rejects with ImportStopped when the source breaks (the rows before that are written), the store
 * fails, or `signal` is aborted. Rejects with the error itself when nothing was begun.
 *
 * When two rows have the same id, `skip` and `fail` keep the earlier one. Within a few thousand rows of each
 * other, either of them may be kept. `replace` always keeps the later one.
 */
export async function importItems(options: ImportOptions): Promise<ImportResult> {
  const { source, onConflict, isEndless, onRemoved, signal, progress } = options;
  const count = { read: 0, written: 0, skipped: 0, failed: 0 };
  const fail = (at: number, reason: string, of?: string): void => {
    count.failed++;
    options.report(at, reason, of);
  };
  const onWritten: OnWritten = ({ written, skipped }) => {
    count.written += written;
    count.skipped += skipped;
    progress(count);
  };
  let makeIndexes: (() => Promise<void>) | null | undefined;
  const begin = async (): Promise<Writer> => {
    const store = await options.open();
    const load = isEndless ? null : await store.load?.(onConflict, fail, onRemoved !== undefined);
    onRemoved?.(load ? load.removed : await store.clear(signal));
    if (load) return loadWriter(load, onWritten);
    makeIndexes = isEndless ? null : await store.postponeIndexes?.();
    if (makeIndexes) options.onPostponed?.();
    return batchWriter(store, onConflict, onWritten, fail);
  };
  let writer: Writer | null = null;
  let stopped: { readonly cause: unknown } | null = null;
  try {
    for await (const row of source) {
      signal.throwIfAborted();
      if (++count.read % PROGRESS_ROWS === 0) progress(count);
      if ('problem' in row) {
        fail(row.at, row.problem, row.of);
      } else {
        writer ??= await begin();
        const full = writer.add(row.item, row.at);
        if (full) await full; // avoids a promise for every row
      }
    }
    await writer?.finish();
  } catch (cause) {
    if (!writer && !(cause instanceof BrokenSource || signal.aborted)) throw cause;
    stopped = { cause };
    // The rows that were read are written. An error of the store is the more serious one.
    await writer?.finish().catch((error: unknown) => {
      stopped = { cause: error };
    });
  }
  await makeIndexes?.().catch((error: unknown) => {
    stopped = { cause: error };
  });
  if (stopped) throw new ImportStopped(count, stopped.cause);
  return count;
}

type OnWritten = (result: Pick<InsertResult, 'written' | 'skipped'>) => void;

/** Writes the rows of a run. */
interface Writer {
  /** Adds a row, and its position in the source. When it returns a promise, the next row waits for that. */
  add(item: Uint8Array, at: number): void | Promise<void>;
  /** Writes the remaining rows. Resolves when every row is durable or refused, and rejects when none is written any more. */
  finish(): Promise<void>;
}

/**
 * Gathers rows into batches and inserts up to PARALLEL of them at the same time; with `replace` one, so that a later row
 * replaces an earlier one. After the store has failed once, `add` and `finish` reject with its error.
 */
function batchWriter(
  store: Pick<OwnedCollection, 'insert'>,
  onConflict: OnConflict,
  onWritten: OnWritten,
  fail: (at: number, reason: string) => void,
): Writer {
  const parallel = onConflict === 'replace' ? 1 : PARALLEL;
  const pending = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | null = null;
  let items: Uint8Array[] = [];
  let positions: number[] = [];
  let bytes = 0;

  const throwFailure = (): void => {
    if (failure) throw failure.error;
  };
  /** Never rejects: the next call throws the error. */
  const write = async (rows: readonly Uint8Array[], places: readonly number[]): Promise<void> => {
    try {
      const result = await store.insert(rows, onConflict);
      for (const { index, reason } of result.refused) fail(places[index] ?? 0, reason);
      onWritten(result);
    } catch (error) {
      failure ??= { error };
    }
  };
  const send = async (): Promise<void> => {
    const batch = [items, positions] as const;
    [items, positions, bytes] = [[], [], 0];
    while (pending.size >= parallel) await Promise.race(pending);
    throwFailure();
    const written = write(...batch).finally(() => pending.delete(written));
    pending.add(written);
  };
  return {
    add(item, at) {
      items.push(item);
      positions.push(at);
      bytes += item.length;
      return items.length >= BATCH_ROWS || bytes >= BATCH_BYTES ? send() : undefined;
    },
    async finish() {
      if (items.length > 0 && !failure) await send().catch(() => undefined); // it is thrown below
      await Promise.all(pending);
      throwFailure();
    },
  };
}

/** Gives rows to a load. Its rows so far are kept when the run ends early. */
function loadWriter(load: Load, onWritten: OnWritten): Writer {
  const finish = async (): Promise<void> => {
    try {
      onWritten(await load.finish());
    } catch (error) {
      await load.abandon().catch(() => undefined); // the store undoes it when it is opened next
      throw error;
    }
  };
  let ended: Promise<void> | undefined;
  return { add: (item, at) => load.add(item, at), finish: () => (ended ??= finish()) };
}
