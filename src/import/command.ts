import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { AppError, CommandRefusal } from '../base/errors.ts';
import { KEY, KEY_EXISTS } from '../store/bookmark.ts';
import type { Count } from '../store/store.ts';
import { reasonOf } from '../base/error-reason.ts';
import { UsageError } from '../terminal/arguments.ts';
import { startProgress, type Console, type Progress } from '../terminal/progress.ts';
import { counted, countOf, printable, quoted } from '../terminal/text.ts';
import type { ImportCommand } from './arguments.ts';
import {
  importRows,
  ImportStop,
  type ImportedStore,
  type ImportOptions,
  type ImportResult,
} from './import.ts';
import { readRows } from './reading.ts';
import { BrokenSource, type Rows } from './row.ts';
import { SAMPLE_ROWS, sampleItems } from './sample.ts';
import type { KindsAt } from './column.ts';
import { openSource, STDIN } from './source.ts';
import { sumRowNotes } from './sum-row.ts';
import { syncRows, type SyncOptions } from './sync/sync.ts';
import { generateItems } from './synthetic.ts';

export { parseImportArguments } from './arguments.ts';
export { IMPORT_HELP } from './help.ts';

const POSTPONED =
  'the indexes are made after the rows; if this import is killed, run it again with --on-conflict skip or replace';

/** The bad rows of a kind that are listed one by one: a wrong --price makes millions of them. */
const MOST_LISTED = 10;
/** The kinds that are counted each by itself. */
const MOST_KINDS = 100;

interface ImportIo extends Console {
  readonly stdin: Readable;
  /** The store as its operator knows it. */
  readonly place: string;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
}

interface Source extends Rows {
  /** The bytes of a file, or the number of generated rows. null: unknown. */
  readonly total: number | null;
  /** How much of them was read, after this number of rows. */
  readonly position: (rowsRead: number) => number;
  readonly close?: () => void;
}

/** What an import writes. Its methods call `say` with a line for each thing that was made. */
export interface ImportTarget {
  /** Whether it may have rows. */
  readonly exists: boolean;
  /** The setting without which no server serves it. */
  readonly setting?: string;
  /** The kinds that its fields have, which columns are read as. */
  readonly kindsAt?: KindsAt;
  /** Opens it, and makes it when it is missing. Called when the first row can be written. */
  open(say: (line: string) => void): Promise<ImportedStore>;
  /** Called after the rows were written. Resolves with whether all that was asked for is there. */
  finish?(say: (line: string) => void): Promise<boolean>;
}

/** Runs an import and reports the result on stderr. Resolves with the exit code: see IMPORT_HELP. */
export async function runImport(
  command: ImportCommand,
  target: ImportTarget,
  io: ImportIo,
): Promise<0 | 1 | 2> {
  let progress: Progress | undefined;
  const say = (line: string): void => {
    if (progress) progress.line(printable(line));
    else io.stderr.write(`${printable(line)}\n`);
  };
  const open = async (source: Source): Promise<ImportedStore> => {
    const store = await target.open(say);
    if (target.exists) await checkStored(command, store, source, io);
    progress = startProgress(io, source.total);
    return store;
  };
  const ofFile = nameLine(command, target);
  if (ofFile !== null) say(ofFile);
  const bad = new BadRows();
  let source: Source | undefined;
  const sums: string[] = [];
  let conflicts = 0;
  let code: 0 | 1 | 2;
  try {
    const opened = (source = await openRows(command, target, io));
    const { rows, unit, position } = opened;
    opened.warnings?.forEach(say);
    const options: ImportOptions & SyncOptions = {
      source: rows,
      onConflict: command.onConflict,
      signal: io.signal,
      open: () => open(opened),
      isEndless: isStdin(command),
      isConfirmed: syncOf(command) === 'yes',
      withoutKey: () => opened.withoutKey?.() ?? 0,
      say,
      place: io.place,
      ...(command.drop !== 'no' && {
        onRemoved: (removed) => say(`removed ${countText(removed)} from ${io.place}`),
      }),
      progress: ({ read, written }) =>
        progress?.update(position(read), `${counted(read)} rows read, ${counted(written)} written`),
      onPostponed: () => say(POSTPONED),
      ...(isTable(command) && { onEnd: (ends) => sums.push(...sumRowNotes(ends, unit)) }),
      report: (at, reason, of) => {
        if (reason === KEY_EXISTS) conflicts++;
        if (bad.add(`${unit} ${at}`, reason, of)) say(`${unit} ${at}: ${reason}`);
      },
    };
    const result = await (syncOf(command) ? syncRows(options) : importRows(options));
    progress?.stop();
    for (const line of [...bad.rest, ...(source.describe?.() ?? []), ...sums]) say(line);
    if (conflicts > 0 && target.exists) say(conflictLine(conflicts, command));
    say(`the import finished: ${summary(result)}`);
    code = result.failed > 0 ? 1 : 0;
    if (!progress) {
      const reason = result.read === 0 ? 'the source has no rows' : 'no row can be imported';
      const removes = command.drop !== 'no' || syncOf(command) !== undefined;
      if (removes) code = 1;
      if (removes || !target.exists) say(`nothing was ${removes ? 'removed' : 'made'}, because ${reason}`);
    } else if (opened.withoutKey?.())
      say(
        `rows without a key of their own: ${counted(opened.withoutKey())}. Another run adds them once more; --id COLUMN names a key`,
      );
  } catch (error) {
    progress?.stop();
    bad.rest.forEach(say);
    code = reportFailure(error, io);
  } finally {
    source?.close?.();
  }
  if (!progress || code === 2 || io.signal.aborted) return code;
  return (await target.finish?.(say)) === false ? 1 : code;
}

/** Says which resource a file becomes that names it. null: --into names it. */
function nameLine(command: ImportCommand, { exists, setting }: ImportTarget): string | null {
  if (command.kind !== 'file' || !command.into?.isOfFile) return null;
  const served = setting === undefined ? '' : `, which ${setting} serves`;
  const verb = exists ? 'goes into' : 'becomes';
  return `${quoted(basename(command.file))} ${verb} the resource /${command.into.name}${served}; --into NAME chooses another`;
}

/** Throws UsageError when stored rows would be removed without --yes, or rows without keys would come to others. */
async function checkStored(
  command: ImportCommand,
  store: Pick<ImportedStore, 'count'>,
  { withoutKey }: Source,
  { place, signal }: ImportIo,
): Promise<void> {
  if (syncOf(command)) return; // a sync looks at the keys of all rows
  const mayAdd = command.drop !== 'no' || (command.kind === 'file' && command.appends);
  if (command.drop !== 'unconfirmed' && (mayAdd || !withoutKey?.())) return;
  const count = await store.count({ sort: KEY, direction: 1 }, 'estimated', signal);
  if (count.rows === 0 && (count.is === 'exact' || command.drop === 'no')) return;
  const rows = countText(count);
  throw new UsageError(
    command.drop === 'no'
      ? `${place} has ${rows} already, and those of the file have no key, so that a second run adds them once more. ` +
          'Choose: --id COLUMN names their key, --drop removes the stored ones first, --append adds to them'
      : `--drop removes ${rows} from ${place}: confirm it with --yes`,
  );
}

function countText({ rows, is }: Count): string {
  const prefix = is === 'exact' ? '' : is === 'estimated' ? 'about ' : 'at least ';
  return prefix + countOf(rows, 'row');
}

function syncOf(command: ImportCommand): 'unconfirmed' | 'yes' | undefined {
  return command.kind === 'file' ? command.sync : undefined;
}

/** What an import says of rows that were refused because their keys are stored. */
function conflictLine(rows: number, { kind }: ImportCommand): string {
  const sync =
    kind === 'file' ? '--sync writes the rows that differ and removes those that the file lacks; ' : '';
  return `${countOf(rows, 'row')} not written, because the keys are stored, or come twice. ${sync}--on-conflict replace writes those of the source, skip keeps the stored ones`;
}

function isTable(command: ImportCommand): boolean {
  return command.kind === 'file' && command.format === 'csv';
}

function isStdin(command: ImportCommand): boolean {
  return command.kind === 'file' && command.file === STDIN;
}

async function openRows(command: ImportCommand, target: ImportTarget, io: ImportIo): Promise<Source> {
  const position = (rows: number): number => rows;
  if (command.kind === 'generate') {
    const { count, seed } = command;
    return { unit: 'row', rows: generateItems(count, seed), total: count, position };
  }
  if (command.kind === 'sample') return { unit: 'line', rows: sampleItems(), total: SAMPLE_ROWS, position };
  const open = () => openSource(command.file, io.stdin, io.signal);
  const source = await open();
  const { bytes, size, close } = source;
  try {
    const again = size === null ? null : async () => (await open()).bytes;
    const rows = await readRows(bytes, command, again, command.drop === 'no' ? target.kindsAt : undefined);
    return { ...rows, close, total: size, position: () => source.position() };
  } catch (error) {
    close();
    throw error;
  }
}

function summary({ read, written, skipped, failed, unchanged, removed }: ImportResult): string {
  const parts = [`${countOf(read, 'row')} read`, `${counted(written)} written`];
  if (unchanged !== undefined) parts.push(`${counted(unchanged)} unchanged`);
  if (removed !== undefined) parts.push(`${counted(removed)} removed`);
  if (skipped > 0) parts.push(`${counted(skipped)} skipped (ids already in the store)`);
  if (failed > 0) parts.push(`${counted(failed)} failed`);
  return parts.join(', ');
}

const EXPECTED = [UsageError, BrokenSource, AppError, CommandRefusal];

/** Writes why the run ended early and what is in the store. An unexpected error from outside a run is thrown again. */
function reportFailure(error: unknown, { stderr, signal }: ImportIo): 1 | 2 {
  const cause = error instanceof ImportStop ? error.cause : error;
  const interrupted = signal.aborted && cause === signal.reason;
  const expected = interrupted || EXPECTED.some((type) => cause instanceof type);
  if (!expected && cause === error) throw error;
  const trace = !expected && cause instanceof Error ? cause.stack : undefined;
  stderr.write(`sluice: ${trace ?? printable(reasonOf(cause))}\n`);
  if (error instanceof ImportStop) stderr.write(`the import stopped: ${summary(error.result)}\n`);
  return cause instanceof UsageError ? 2 : 1;
}

/** The bad rows of an import by their kinds: the same fault of the same column, whatever the value. */
class BadRows {
  readonly #kinds = new Map<string, { readonly at: string; readonly of: string; rows: number }>();

  /** Counts a bad row at a place such as `line 2`. Returns whether the report lists it. */
  add(at: string, reason: string, of = ''): boolean {
    const shape = `${of} ${reason.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/\d+/g, '0')}`;
    const key = this.#kinds.has(shape) || this.#kinds.size < MOST_KINDS ? shape : '';
    const kind = this.#kinds.get(key) ?? { at, of, rows: 0 };
    this.#kinds.set(key, kind);
    return ++kind.rows <= MOST_LISTED;
  }

  /** A line for each kind that has further rows. */
  get rest(): readonly string[] {
    return [...this.#kinds.values()]
      .filter(({ rows }) => rows > MOST_LISTED)
      .map(({ at, of, rows }) => {
        const ofField = of === '' ? '' : `, of ${of}`;
        return `${counted(rows - MOST_LISTED)} more like this${ofField} (the first: ${at})`;
      });
  }
}
