import type { Readable } from 'node:stream';
import { AppError, CommandRefusal } from '../errors.ts';
import { KEY } from '../store/bookmark.ts';
import type { Count, OwnedCollection } from '../store/store.ts';
import { reasonOf } from '../error-reason.ts';
import { UsageError } from '../terminal/arguments.ts';
import { askYesNo } from '../terminal/ask.ts';
import { counted, printable } from '../terminal/text.ts';
import type { FileImport, ImportCommand } from './arguments.ts';
import { rejoin } from './chunks.ts';
import { importItems, ImportStopped, type ImportResult } from './import.ts';
import { startProgress, type Console, type Progress } from './progress.ts';
import { readRows } from './reading.ts';
import { BrokenSource, type Rows, type SourceRow } from './row.ts';
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
/** The rows that are read before anything is removed, to find one that can be imported. */
const MOST_TRIED = 1_000;

const POSTPONED =
  'the indexes are made after the rows; if this import is killed, run it again with --on-conflict skip or replace, ' +
  'which makes them first';

export interface ImportIo extends Console {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** The store as its operator knows it. */
  readonly place: string;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
}

/** The opened source of an import. */
interface Source extends Rows {
  /** The bytes of a file, or the number of generated rows. null: unknown. */
  readonly total: number | null;
  /** How much of them was read, after so many rows. */
  readonly position: (rowsRead: number) => number;
  readonly close?: () => void;
}

/** The part of a store that an import uses. */
export type ImportedStore = Pick<OwnedCollection, 'insert' | 'load' | 'postponeIndexes' | 'count' | 'clear'>;

/** The stored rows stay, and nothing is imported: the answer to the question was no. */
class Declined extends Error {
  override readonly name = 'Declined';
}

/**
 * Runs an import and reports the result on stderr. Resolves with the exit code: 0 when every row is in the
 * store, 1 when some rows are not or the run stopped early, 2 when the command does not fit the file.
 */
export async function runImport(
  command: ImportCommand,
  into: ImportedStore,
  io: ImportIo,
): Promise<0 | 1 | 2> {
  const noun = command.kind === 'file' && command.into ? 'row' : 'item';
  const store = isStdin(command) ? withoutLoad(into) : into;
  let progress: Progress | undefined;
  let source: Source | undefined;
  const say = (line: string): void => {
    if (progress) progress.line(line);
    else io.stderr.write(`${line}\n`);
  };
  const onRemoved = (removed: Count): void => {
    say(`removed ${rowsOf(removed, noun)} from ${printable(io.place)}`);
  };
  try {
    if (command.drop === 'ask') checkCanAsk(command, noun, io);
    source = await openRows(command, io);
    let { rows } = source;
    if (command.drop !== 'no') {
      rows = await withGoodRow(rows, noun);
      if (command.drop === 'ask') await confirm(store, io, noun);
      if (!store.load) onRemoved(await store.clear(io.signal));
    }
    progress = startImport(io, source.total);
    const result = await importRows(command, store, { ...source, rows }, progress, io.signal, onRemoved);
    progress.stop();
    for (const line of source.describe?.() ?? []) say(line);
    say(`the import finished: ${summary(result)}`);
    return result.failed > 0 ? 1 : 0;
  } catch (error) {
    progress?.stop();
    return reportFailure(error, io, noun);
  } finally {
    source?.close?.();
  }
}

function importRows(
  command: ImportCommand,
  store: ImportedStore,
  { rows, unit, position }: Source,
  progress: Progress,
  signal: AbortSignal,
  onRemoved: (removed: Count) => void,
): Promise<ImportResult> {
  let listed = 0;
  return importItems({
    ...{ store, source: rows, onConflict: command.onConflict, signal },
    ...(command.drop !== 'no' && store.load && { onRemoved }),
    progress: ({ read, written }) => progress.update(position(read), read, { written: counted(written) }),
    onPostponed: () => progress.line(POSTPONED),
    report: (at, reason) => {
      if (listed < MAX_LISTED) progress.line(`${unit} ${at}: ${printable(reason)}`);
      else if (listed === MAX_LISTED) progress.line('further bad rows are counted but not listed');
      listed++;
    },
  });
}

/** The progress of an import of so many bytes, or rows. */
export function startImport(io: Console, total: number | null): Progress {
  const format =
    total === null
      ? '{rows} rows read, {written} written | {duration_formatted}'
      : '{bar} {percentage}% | {rows} rows read, {written} written | {eta_formatted} left';
  return startProgress(
    io,
    total ?? 0,
    format,
    ({ rows, written }) => `${rows ?? ''} rows read, ${written ?? ''} written`,
  );
}

/** Throws UsageError when nobody can answer the question of --drop. */
function checkCanAsk(command: ImportCommand, noun: string, { stdin, isTTY }: ImportIo): void {
  if (isTTY && stdin.isTTY && !isStdin(command)) return;
  const reason = isStdin(command) ? 'standard input is the file' : 'there is no terminal to ask on';
  throw new UsageError(`--drop removes all ${noun}s; confirm it with --yes, because ${reason}`);
}

/**
 * The same rows, once it is known that one of the first can be imported: until then nothing is removed. Throws
 * BrokenSource when none can.
 */
async function withGoodRow(rows: AsyncIterable<SourceRow>, noun: string): Promise<AsyncIterable<SourceRow>> {
  const iterator = rows[Symbol.asyncIterator]();
  const first: SourceRow[] = [];
  while (first.length < MOST_TRIED) {
    const next = await iterator.next();
    if (next.done) break;
    first.push(next.value);
    if ('item' in next.value) return rejoin(first, iterator);
  }
  const [bad] = first;
  const reason = bad && 'problem' in bad ? `. The first one, ${bad.at}: ${bad.problem}` : '';
  const found = bad
    ? `none of its first ${counted(first.length)} rows can be imported`
    : 'the source has no rows';
  throw new BrokenSource(`no ${noun}s were removed, because ${found}${reason}`);
}

async function confirm(
  store: Pick<OwnedCollection, 'count'>,
  { stdin, stderr, place, signal }: ImportIo,
  noun: string,
): Promise<void> {
  const count = await store.count({ sort: KEY, direction: 1 }, 'estimated', signal);
  if (count.rows === 0 && count.is === 'exact') return;
  const question = `Remove ${rowsOf(count, noun)} from ${printable(place)} before the import? (y/N) `;
  if (!(await askYesNo(question, stdin, stderr, signal))) throw new Declined();
}

/** A number of items, or of rows, as a text. */
function rowsOf({ rows, is }: Count, noun: string): string {
  const prefix = is === 'exact' ? '' : is === 'estimated' ? 'about ' : 'at least ';
  return `${prefix}${counted(rows)} ${noun}${rows === 1 ? '' : 's'}`;
}

function isStdin(command: ImportCommand): boolean {
  return command.kind === 'file' && command.file === STDIN;
}

/** Standard input may never end, and the rows of a load appear at its end. */
function withoutLoad(store: ImportedStore): ImportedStore {
  return {
    insert: (...call) => store.insert(...call),
    count: (...call) => store.count(...call),
    clear: (...call) => store.clear(...call),
  };
}

async function openRows(command: ImportCommand, io: ImportIo): Promise<Source> {
  const position = (rows: number): number => rows;
  switch (command.kind) {
    case 'file':
      return openFileRows(command, io);
    case 'generate': {
      const { count, seed } = command;
      return { unit: 'row', rows: generateItems(count, seed), total: count, position };
    }
    case 'sample':
      return { unit: 'line', rows: sampleItems(), total: SAMPLE_ROWS, position };
  }
}

async function openFileRows(command: FileImport, io: ImportIo): Promise<Source> {
  const { file } = command;
  const opened = await openSource(file, io.stdin, io.signal);
  const again = async () => withBar(await openSource(file, io.stdin, io.signal), io);
  const close = () => opened.close();
  try {
    const rows = await readRows(opened.bytes, command, opened.size === null ? null : again);
    return { ...rows, close, total: opened.size, position: () => opened.position() };
  } catch (error) {
    close();
    throw error;
  }
}

/** The bytes of a file, with a bar on a terminal while they are read. Closes the file when the reader stops. */
async function* withBar(opened: OpenedSource, io: Console): AsyncGenerator<Buffer> {
  const format = '{bar} {percentage}% | reading the columns | {eta_formatted} left';
  const progress = startProgress(io, opened.size ?? 0, format, () => '');
  try {
    for await (const chunk of opened.bytes) {
      progress.update(opened.position(), 0);
      yield chunk;
    }
  } finally {
    progress.stop();
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
  const trace = !expected && cause instanceof Error ? cause.stack : undefined;
  stderr.write(`sluice: ${trace ?? printable(reasonOf(cause))}\n`);
  if (error instanceof ImportStopped) stderr.write(`the import stopped: ${summary(error.result)}\n`);
  return cause instanceof UsageError ? 2 : 1;
}
