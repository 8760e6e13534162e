import { AppError, CommandRefusal } from '../errors.ts';
import type { Count, OwnedCollection } from '../store/store.ts';
import { reasonOf } from '../thrown.ts';
import { UsageError } from '../terminal/arguments.ts';
import { startBar } from '../terminal/bar.ts';
import { counted, printable } from '../terminal/text.ts';
import type { FileImport, ImportCommand } from './arguments.ts';
import { importItems, ImportStopped, type ImportOptions, type ImportResult } from './import.ts';
import { checkDrop, Declined, dropItems, nounOf, rowsOf, type DropIo } from './drop.ts';
import { createProgress, extentOfRows, type Console, type Extent, type Progress } from './progress.ts';
import { readRows } from './reading.ts';
import { BrokenSource, type Rows } from './row.ts';
import { SAMPLE_ROWS, sampleItems } from './sample.ts';
import { openSource, STDIN, type OpenedSource } from './source.ts';
import { generateItems } from './synthetic.ts';

export { parseImportArguments } from './arguments.ts';
export { IMPORT_HELP } from './help.ts';

/**
 * The number of bad rows that are listed one by one. A wrong --price would otherwise fill the terminal with
 * millions of lines.
 */
const MAX_LISTED = 1_000;

const POSTPONED =
  'the indexes are made after the rows; if this import is killed, run it again with --on-conflict skip or replace, ' +
  'which makes them first';

export interface ImportIo extends Console, DropIo {
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
}

/** The opened source of an import. */
interface Source extends Rows {
  readonly extent: Extent;
  readonly close?: () => void;
}

/** The part of a store that an import uses. */
export type ImportedStore = Pick<OwnedCollection, 'insert' | 'load' | 'postponeIndexes' | 'count' | 'clear'>;

/**
 * Runs an import and reports the result on stderr. Resolves with the exit code: 0 when every row is in the
 * store, 1 when some rows are not or the run stopped early, 2 when the command does not fit the file.
 */
export async function runImport(
  command: ImportCommand,
  into: ImportedStore,
  io: ImportIo,
): Promise<0 | 1 | 2> {
  const store = isEndless(command) ? withoutLoad(into) : into;
  let progress: Progress | undefined;
  let source: Source | undefined;
  try {
    checkDrop(command, io);
    source = await openRows(command, io);
    const dropped = command.drop === 'no' ? null : await dropItems(source.rows, command, store, io);
    const tell = (removed: Count): void => {
      const line = `removed ${rowsOf(removed, nounOf(command))} from ${printable(io.place)}`;
      if (progress) progress.line(line);
      else io.stderr.write(`${line}\n`);
    };
    if (dropped?.removed) tell(dropped.removed);
    const rows = dropped?.rows ?? source.rows;
    progress = createProgress(io, source.extent);
    const result = await importRows(command, store, { ...source, rows }, progress, io.signal, {
      ...(dropped?.removed === null && { onRemoved: tell }),
    });
    progress.stop();
    for (const line of source.describe?.() ?? []) progress.line(line);
    progress.line(`the import finished: ${summary(result)}`);
    return result.failed > 0 ? 1 : 0;
  } catch (error) {
    progress?.stop();
    return reportFailure(error, io, nounOf(command));
  } finally {
    source?.close?.();
  }
}

function importRows(
  command: ImportCommand,
  store: ImportedStore,
  { rows, unit }: Source,
  progress: Progress,
  signal: AbortSignal,
  replacing: Pick<ImportOptions, 'onRemoved'>,
): Promise<ImportResult> {
  let listed = 0;
  const { onConflict } = command;
  return importItems({
    ...replacing,
    store,
    source: rows,
    onConflict,
    signal,
    progress: (count) => progress.update(count),
    onPostponed: () => progress.line(POSTPONED),
    report: (at, reason) => {
      if (listed < MAX_LISTED) progress.line(`${unit} ${at}: ${printable(reason)}`);
      else if (listed === MAX_LISTED) progress.line('further bad rows are counted but not listed');
      listed++;
    },
  });
}

/** Standard input may never end, and the rows of a load appear at its end. */
function isEndless(command: ImportCommand): boolean {
  return command.kind === 'file' && command.file === STDIN;
}

/** The same store, without what only an import with an end can use. */
function withoutLoad(store: ImportedStore): ImportedStore {
  return {
    insert: (...call) => store.insert(...call),
    count: (...call) => store.count(...call),
    clear: (...call) => store.clear(...call),
  };
}

async function openRows(command: ImportCommand, io: ImportIo): Promise<Source> {
  switch (command.kind) {
    case 'file':
      return openFileRows(command, io);
    case 'generate':
      return {
        unit: 'row',
        rows: generateItems(command.count, command.seed),
        extent: extentOfRows(command.count),
      };
    case 'sample':
      return { unit: 'line', rows: sampleItems(), extent: extentOfRows(SAMPLE_ROWS) };
  }
}

async function openFileRows(command: FileImport, io: ImportIo): Promise<Source> {
  const { file } = command;
  const opened = await openSource(file, io.stdin, io.signal);
  const again = async () => withBar(await openSource(file, io.stdin, io.signal), io);
  const close = () => opened.close();
  try {
    const rows = await readRows(opened.bytes, command, opened.size === null ? null : again);
    return { ...rows, close, extent: { total: opened.size, position: () => opened.position() } };
  } catch (error) {
    close();
    throw error;
  }
}

/** The bytes of a file, with a bar on a terminal while they are read. Closes the file when the reader stops. */
async function* withBar(opened: OpenedSource, { stderr, isTTY }: Console): AsyncGenerator<Buffer> {
  const format = '{bar} {percentage}% | reading the columns | {eta_formatted} left';
  const bar = isTTY ? startBar(stderr, format, opened.size ?? 0, {}) : null;
  try {
    for await (const chunk of opened.bytes) {
      bar?.update(opened.position(), {});
      yield chunk;
    }
  } finally {
    bar?.stop();
    opened.close();
  }
}

function summary({ read, written, skipped, failed }: ImportResult): string {
  const parts = [`${counted(read)} ${read === 1 ? 'row' : 'rows'} read`, `${counted(written)} written`];
  if (skipped > 0) parts.push(`${counted(skipped)} skipped (ids already in the store)`);
  if (failed > 0) parts.push(`${counted(failed)} failed`);
  return parts.join(', ');
}

const EXPECTED = [UsageError, BrokenSource, AppError, CommandRefusal];

/**
 * Writes why the run ended early and what is in the store. Returns the exit code. An unexpected error from
 * outside a run is thrown again.
 */
function reportFailure(error: unknown, { stderr, signal }: ImportIo, noun: string): 1 | 2 {
  if (error instanceof Declined) {
    stderr.write(`no ${noun}s were removed, and none were imported\n`);
    return 1;
  }
  const cause = error instanceof ImportStopped ? error.cause : error;
  const interrupted = signal.aborted && cause === signal.reason;
  const expected = interrupted || EXPECTED.some((type) => cause instanceof type);
  if (!expected && cause === error) throw error;
  stderr.write(`sluice: ${expected ? messageOf(cause) : traceOf(cause)}\n`);
  if (error instanceof ImportStopped) stderr.write(`the import stopped: ${summary(error.result)}\n`);
  return cause instanceof UsageError ? 2 : 1;
}

function messageOf(error: unknown): string {
  return printable(reasonOf(error));
}

function traceOf(error: unknown): string {
  return (error instanceof Error ? error.stack : undefined) ?? messageOf(error);
}
