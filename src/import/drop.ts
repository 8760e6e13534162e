import type { Readable } from 'node:stream';
import { KEY } from '../store/bookmark.ts';
import type { Count, OwnedCollection } from '../store/store.ts';
import { UsageError } from '../terminal/arguments.ts';
import { askYesNo } from '../terminal/ask.ts';
import { counted, printable } from '../terminal/text.ts';
import type { ImportCommand } from './arguments.ts';
import { rejoin } from './chunks.ts';
import { BrokenSource, type SourceRow } from './row.ts';
import { STDIN } from './source.ts';

/** The rows that are read before anything is removed, to find one that can be imported. */
const MOST_ROWS = 1_000;

/** What an import with --drop needs. */
export interface DropIo {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
  /** Whether stderr is a terminal. */
  readonly isTTY: boolean;
  /** The store as its operator knows it. */
  readonly place: string;
  readonly signal: AbortSignal;
}

/** The stored rows stay, and nothing is imported: the answer to the question was no. */
export class Declined extends Error {
  override readonly name = 'Declined';
}

/** Throws UsageError when a command has a question that nobody can answer. */
export function checkDrop(command: ImportCommand, { stdin, isTTY }: DropIo): void {
  if (command.drop !== 'ask') return;
  const isInput = command.kind === 'file' && command.file === STDIN;
  if (isTTY && stdin.isTTY && !isInput) return;
  const reason = isInput ? 'standard input is the file' : 'there is no terminal to ask on';
  throw new UsageError(`--drop removes all ${nounOf(command)}s; confirm it with --yes, because ${reason}`);
}

/**
 * Removes all items, once it is known that the source has a row to import instead. Resolves with all rows of the source
 * and the number of items removed, or null when the load of the store is to replace them. Rejects before anything is
 * removed: with BrokenSource when none of the first rows can be imported, and with Declined when the user says no.
 */
export async function dropItems(
  rows: AsyncIterable<SourceRow>,
  command: ImportCommand,
  store: Pick<OwnedCollection, 'count' | 'clear' | 'load'>,
  io: DropIo,
): Promise<{ readonly rows: AsyncIterable<SourceRow>; readonly removed: Count | null }> {
  const iterator = rows[Symbol.asyncIterator]();
  const first: SourceRow[] = [];
  while (!first.some((row) => 'item' in row)) {
    const next = first.length < MOST_ROWS ? await iterator.next() : null;
    if (!next || next.done) throw nothingToImport(first, nounOf(command));
    first.push(next.value);
  }
  if (command.drop === 'ask') await confirm(store, io, nounOf(command));
  const removed = store.load ? null : await store.clear(io.signal);
  return { rows: rejoin(first, iterator), removed };
}

function nothingToImport(rows: readonly SourceRow[], noun: string): BrokenSource {
  const [bad] = rows;
  const reason = bad && 'problem' in bad ? `. The first one, ${bad.at}: ${bad.problem}` : '';
  const found = bad
    ? `none of its first ${counted(rows.length)} rows can be imported`
    : 'the source has no rows';
  return new BrokenSource(`no ${noun}s were removed, because ${found}${reason}`);
}

async function confirm(
  store: Pick<OwnedCollection, 'count'>,
  { stdin, stderr, place, signal }: DropIo,
  noun: string,
): Promise<void> {
  const count = await store.count({ sort: KEY, direction: 1 }, 'estimated', signal);
  if (count.rows === 0 && count.is === 'exact') return;
  const question = `Remove ${rowsOf(count, noun)} from ${printable(place)} before the import? (y/N) `;
  if (!(await askYesNo(question, stdin, stderr, signal))) throw new Declined();
}

/** What an import writes: items, or the rows of a resource. */
export function nounOf(command: ImportCommand): 'item' | 'row' {
  return command.kind === 'file' && command.into ? 'row' : 'item';
}

/** A number of items, or of rows, as a text. */
export function rowsOf({ rows, is }: Count, noun: string): string {
  const prefix = is === 'exact' ? '' : is === 'estimated' ? 'about ' : 'at least ';
  return `${prefix}${counted(rows)} ${noun}${rows === 1 ? '' : 's'}`;
}
