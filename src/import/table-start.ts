import { UsageError } from '../terminal/arguments.ts';
import { counted, quoted } from '../terminal/text.ts';
import type { Reading } from './arguments.ts';
import { CsvScanner } from './csv-scanner.ts';

const LF = 0x0a;
const CR = 0x0d;
/** What may separate the cells of a file when the command does not say. */
const DELIMITERS = [',', ';', '\t'];
/** The line that tells Excel the delimiter. */
const SEPARATOR = /^"?sep=([^\r\n])"?(?:\r\n?|\n)/i;

/** Where the table of a CSV file begins, and what separates its cells. */
export interface TableStart {
  /** The lines above the header row. */
  readonly lines: number;
  readonly delimiter: string;
  /** The beginning of the file from the header row on. */
  readonly head: Buffer;
}

/** Whether the bytes of a file, without a byte order mark, have its whole header row. */
export function hasHeader(head: Buffer, { skippedLines = 0 }: Reading): boolean {
  return linesOf(head.subarray(behindLines(head, skippedLines))).length > 1;
}

/**
 * Finds the header row of a file by its beginning, without a byte order mark. Throws UsageError when several characters may
 * be the delimiter: each gives other columns.
 */
export function tableStart(head: Buffer, { skippedLines, delimiter }: Reading): TableStart {
  const [, separator] = SEPARATOR.exec(head.toString('latin1', 0, 16)) ?? [];
  const lines = Math.max(skippedLines ?? 0, separator === undefined ? 0 : 1);
  const table = head.subarray(behindLines(head, lines));
  return { lines, delimiter: delimiter ?? separator ?? delimiterOf(table), head: table };
}

/** The content of a file without its first lines. */
export async function* withoutLines(
  count: number,
  source: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  let left = count;
  let endsInCr = false;
  for await (const chunk of source) {
    let at: number = endsInCr && chunk[0] === LF ? 1 : 0;
    endsInCr = false;
    while (left > 0 && at < chunk.length) {
      const end = lineEnd(chunk, at);
      if (end < 0) break;
      left--;
      at = end;
      if (left === 0 && at === chunk.length) endsInCr = chunk[at - 1] === CR;
    }
    endsInCr ||= left > 0 && chunk.at(-1) === CR;
    if (left === 0 && at < chunk.length) yield chunk.subarray(at);
  }
}

/** The index behind the first lines of bytes. */
function behindLines(bytes: Buffer, count: number): number {
  let at = 0;
  for (let n = 0; n < count; n++) {
    const end = lineEnd(bytes, at);
    if (end < 0) return bytes.length;
    at = end;
  }
  return at;
}

/** The index behind the line that begins at an index. -1: it does not end. */
function lineEnd(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] === LF) return at + 1;
    if (bytes[at] === CR) return bytes[at + 1] === LF ? at + 2 : at + 1;
  }
  return -1;
}

/** The lines of a table's beginning without what is in quotes: the first is the header row. */
function linesOf(head: Buffer): readonly string[] {
  const text = head.toString('latin1').replace(/"[^"]*(?:"|$)/g, 'x');
  return text.replace(/^[\r\n]+/, '').split(/[\r\n]/, 2);
}

/**
 * The delimiter of a header row: the only one of comma, semicolon and tab that occurs outside of quotes. A comma when
 * none does, since the file then has one column.
 */
function delimiterOf(head: Buffer): string {
  const [header = ''] = linesOf(head);
  const [delimiter = ',', ...others] = DELIMITERS.filter((character) => header.includes(character));
  if (others.length === 0) return delimiter;
  const names = [delimiter, ...others].map((character) => (character === '\t' ? 'tab' : character));
  throw new UsageError(
    `the header row contains ${names.join(' and ')} outside of quotes; name the one that separates the columns with --delimiter`,
  );
}

/** A record of the beginning of a file: its line, and its cells. */
interface HeadRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * Throws UsageError with the line that may be the header row, when the one that is taken for it has one filled cell, as the
 * title of a report does. `isFirst`: the command does not say where the table begins.
 */
export function refuseTitle(
  header: readonly string[],
  { lines, delimiter, head }: TableStart,
  isFirst: boolean,
): void {
  const filled = header.filter((name) => name.trim() !== '');
  const isTitle =
    header.length === 1 ? isFirst : filled.length === 1 && (header.length > 2 || header[0] !== '');
  const [title] = filled;
  if (!isTitle || title === undefined) return;
  const delimiters =
    header.length === 1 && !DELIMITERS.some((one) => title.includes(one)) ? DELIMITERS : [delimiter];
  const found = delimiters
    .map((one) => headerBelow(recordsIn(head, one, lines + 1)))
    .filter((one) => one !== undefined)
    .sort((a, b) => b.cells.length - a.cells.length)[0];
  if (!found) return;
  const names = found.cells.slice(0, 3).map((name) => quoted(name));
  const more = found.cells.length > names.length ? ', ...' : '';
  throw new UsageError(
    `the header row has one filled cell, ${quoted(title)}, and may be a title. --skip-lines ${found.line - 1} ` +
      `takes line ${counted(found.line)} for the header row (${names.join(', ')}${more})` +
      (isFirst ? '; --skip-lines 0 takes the first' : ''),
  );
}

/** The first record below the first one that looks like a header row: all its cells are filled, and most below have as many. */
function headerBelow([, ...records]: readonly HeadRecord[]): HeadRecord | undefined {
  const at = records.findIndex(({ cells }) => cells.length > 1 && cells.every((cell) => cell.trim() !== ''));
  const found = records[at];
  const below = records.slice(at + 1);
  const alike = below.filter(({ cells }) => cells.length === found?.cells.length);
  return alike.length > 0 && alike[0] === below[0] && alike.length * 2 > below.length ? found : undefined;
}

function recordsIn(head: Buffer, delimiter: string, line: number): readonly HeadRecord[] {
  const records: HeadRecord[] = [];
  const scanner = new CsvScanner({ delimiter, missing: [], line });
  scanner.begin(head, false);
  while (scanner.next()) {
    const cells = Array.from({ length: scanner.cells }, (_, column) => scanner.text(column));
    records.push({ line: scanner.line, cells });
  }
  return records;
}
