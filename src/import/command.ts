import type { Readable } from 'node:stream';
import { AppError } from '../errors.ts';
import type { ItemStore } from '../store/store.ts';
import type { FileImport, ImportCommand } from './arguments.ts';
import { readRows } from './format.ts';
import { generateItems } from './generate.ts';
import { importItems, ImportStopped, type ImportResult } from './import.ts';
import { openSource } from './open.ts';
import { createProgress, type Console, type Extent, type Progress } from './progress.ts';
import { BrokenSource, type Rows } from './row.ts';
import { counted, printable } from '../terminal/text.ts';
import { SAMPLE_ROWS, sampleItems } from './sample.ts';
import { UsageError } from '../terminal/arguments.ts';

export { parseImportArguments, type ImportCommand } from './arguments.ts';
export { IMPORT_HELP } from './usage.ts';

/**
 * The number of bad rows that are listed one by one. A wrong --price would otherwise fill the terminal with
 * millions of lines.
 */
const LISTED = 1_000;

export interface ImportIo extends Console {
  readonly stdin: Readable;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
}

/** The opened source of an import. */
interface Source extends Rows {
  readonly extent: Extent;
}

/**
 * Runs an import and reports the result on stderr. Resolves with the exit code: 0 when every row is in the
 * store, 1 when some rows are not or the run stopped early, 2 when the command does not fit the file.
 */
export async function runImport(
  command: ImportCommand,
  store: Pick<ItemStore, 'insert'>,
  io: ImportIo,
): Promise<0 | 1 | 2> {
  let progress: Progress | undefined;
  try {
    const source = await openCommand(command, io);
    progress = createProgress(io, source.extent);
    const result = await run(command, store, source, progress, io.signal);
    progress.stop();
    progress.line(`imported: ${summary(result)}`);
    return result.failed > 0 ? 1 : 0;
  } catch (error) {
    progress?.stop();
    return explain(error, io);
  }
}

function run(
  { onConflict }: ImportCommand,
  store: Pick<ItemStore, 'insert'>,
  { rows, unit }: Source,
  progress: Progress,
  signal: AbortSignal,
): Promise<ImportResult> {
  let listed = 0;
  return importItems({
    store,
    source: rows,
    onConflict,
    signal,
    progress: (count) => progress.update(count),
    report: (at, reason) => {
      if (listed < LISTED) progress.line(`${unit} ${at}: ${printable(reason)}`);
      else if (listed === LISTED) progress.line('more bad rows follow; they are counted, not listed');
      listed++;
    },
  });
}

async function openCommand(command: ImportCommand, io: ImportIo): Promise<Source> {
  switch (command.kind) {
    case 'file':
      return openFile(command, io);
    case 'generate':
      return { unit: 'row', rows: generateItems(command.count, command.seed), extent: ofRows(command.count) };
    case 'sample':
      return { unit: 'line', rows: sampleItems(), extent: ofRows(SAMPLE_ROWS) };
  }
}

async function openFile({ file, format, columns }: FileImport, { stdin, signal }: ImportIo): Promise<Source> {
  const opened = await openSource(file, stdin, signal);
  const rows = await readRows(opened.bytes, format, columns);
  return { ...rows, extent: { total: opened.size, position: () => opened.position() } };
}

function ofRows(total: number): Extent {
  return { total, position: (rowsRead) => rowsRead };
}

function summary({ read, written, skipped, failed }: ImportResult): string {
  const parts = [`${counted(read)} ${read === 1 ? 'row' : 'rows'} read`, `${counted(written)} written`];
  if (skipped > 0) parts.push(`${counted(skipped)} skipped (their ids were there)`);
  if (failed > 0) parts.push(`${counted(failed)} failed`);
  return parts.join(', ');
}

/**
 * Explains why the run ended early and what is in the store. An unexpected error from outside a run is thrown
 * again.
 */
function explain(error: unknown, { stderr, signal }: ImportIo): 1 | 2 {
  const cause = error instanceof ImportStopped ? error.cause : error;
  const interrupted = signal.aborted && cause === signal.reason;
  const expected = interrupted || [UsageError, BrokenSource, AppError].some((type) => cause instanceof type);
  if (!expected && cause === error) throw error;
  stderr.write(`sluice: ${expected ? messageOf(cause) : traceOf(cause)}\n`);
  if (error instanceof ImportStopped) stderr.write(`the import stopped: ${summary(error.result)}\n`);
  return cause instanceof UsageError ? 2 : 1;
}

function messageOf(error: unknown): string {
  return printable(error instanceof Error ? error.message : String(error));
}

function traceOf(error: unknown): string {
  return (error instanceof Error ? error.stack : undefined) ?? messageOf(error);
}
