import { BSON } from '../store/values/bson.ts';
import { counted, quoted } from '../terminal/text.ts';
import type { Reading } from './arguments.ts';
import { peek, takeWhile } from './chunks.ts';
import { otherKindOfBytes } from './file-kinds.ts';
import { readJsonArray, readJsonLines, readJsonObjects } from './json.ts';
import { FieldTypes, jsonRows } from './json-rows.ts';
import { refuseWrapped } from './json-wrapped.ts';
import { inUtf8 } from './encoding.ts';
import { readTable, type Reopen } from './read-table.ts';
import { hasHeader, tableStart, withoutLines } from './table-start.ts';
import { BrokenSource, type Rows, type SourceRows } from './row.ts';
import { RowWriter } from './row-writer.ts';
import type { KindsAt } from './column.ts';
import { checkIndexes, type Target } from './target.ts';

/** The length of the longest byte order mark, plus one. Bytes. */
const MARK_BYTES = 4;
const BYTE_ORDER_MARK = Buffer.from('\ufeff');
/** A first line that is longer is not looked at. Bytes. */
const LONGEST_LINE = 64 * 1024;
/** The same for lines above a header row. */
const LONGEST_TOP = 1024 * 1024;
/** The rows in which the fields of indexes are looked for. */
const MOST_CHECKED = 1_000;
const LF = 0x0a;

/**
 * The rows of a file's decompressed content. JSON is an array, or objects, of which each has a line or several, whatever the
 * name of the file: the first byte that is not blank decides, and how its line ends. `again` opens the same content once more, `kindsAt` is for columns (see readTable).
 */
export async function readRows(
  content: AsyncIterable<Buffer>,
  reading: Reading,
  again: Reopen | null = null,
  kindsAt?: KindsAt,
): Promise<Rows> {
  const { encoding, format } = reading;
  if (encoding !== undefined) {
    const anew = again && (async () => inUtf8(await again(), encoding));
    return readRows(inUtf8(content, encoding), { ...reading, encoding: undefined }, anew, kindsAt);
  }
  const isCsv = format === 'csv';
  const longest = reading.skippedLines === undefined ? LONGEST_LINE : LONGEST_TOP;
  const isTelling = (seen: Buffer) => (isCsv ? hasHeader(seen, reading) : hasFirstRow(seen));
  const { head, bytes } = await peek(
    content,
    (seen) => seen.length > longest || (seen.length >= MARK_BYTES && isTelling(seen)),
  );
  refuseUtf16(head);
  const other = otherKindOfBytes(head, format);
  if (other !== null) throw new BrokenSource(other);
  const mark = head.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
  if (isCsv) {
    const start = tableStart(head.subarray(mark), reading);
    const table = (file: AsyncIterable<Buffer>) =>
      start.lines === 0 ? without(mark, file) : withoutLines(start.lines, without(mark, file));
    const anew = again && (async () => table(await again()));
    return readTable(table(bytes), start, reading, anew, kindsAt);
  }
  const types = new FieldTypes(reading.types);
  const isArray = beginningOf(head).startsWith('[');
  const isLong = hasLongObject(head);
  const writer = new RowWriter(reading.columns);
  const makeRow = jsonRows(reading.columns, types, writer);
  const read = isArray ? readJsonArray : isLong ? readJsonObjects : readJsonLines;
  const all = read(without(isArray ? head.indexOf('[') + 1 : mark, bytes), makeRow);
  const isOneLine = format === 'ndjson' && !isLong;
  const rows = isArray || isOneLine ? all : await refuseWrapped(all, head.toString('utf8', mark));
  return {
    unit: isArray || isLong ? 'row' : 'line',
    rows: reading.into ? await withIndexedFields(rows, reading.into) : rows,
    withoutKey: () => writer.newKeys,
    describe: () => types.unseen.map((name) => `no row has the field ${quoted(name)} of --type`),
  };
}

/** The same rows. Throws UsageError when none of the first has a field of an index. */
async function withIndexedFields(rows: SourceRows, into: Target): Promise<SourceRows> {
  if (into.indexes.length === 0 || into.isForced) return rows;
  const { taken, isCut, all } = await takeWhile(rows, (taken) => taken.flat().length < MOST_CHECKED);
  const first = taken.flat().slice(0, MOST_CHECKED);
  const fields = new Set<string>();
  for (const row of first) if ('item' in row) addPaths(fields, '', BSON.deserialize(row.item));
  const checked = isCut ? `none of the first ${counted(first.length)} rows` : 'no row';
  if (fields.size > 0) checkIndexes(into, [...fields], checked);
  return all;
}

/** Adds the paths that lead to values in a value, also through arrays. */
function addPaths(paths: Set<string>, path: string, value: unknown): void {
  if (Array.isArray(value)) for (const one of value) addPaths(paths, path, one);
  else if (value?.constructor !== Object) paths.add(path);
  else
    for (const [name, inner] of Object.entries(value))
      addPaths(paths, path === '' ? name : `${path}.${name}`, inner);
}

/** The text, as Latin-1, from the first character after blanks and a UTF-8 byte order mark. */
function beginningOf(head: Buffer): string {
  return head.toString('latin1').replace('\u00ef\u00bb\u00bf', '').trimStart();
}

/** The bytes after the first `count` of them. */
async function* without(count: number, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let left = count;
  for await (const chunk of source) {
    const rest = chunk.subarray(left);
    left -= chunk.length - rest.length;
    if (rest.length > 0) yield rest;
  }
}

/** Whether the bytes show what a file of JSON is. The whole first line does, but not what an object over several has. */
function hasFirstRow(head: Buffer): boolean {
  const text = beginningOf(head);
  return text.startsWith('[') || (text !== '' && head.includes(LF) && !hasLongObject(head));
}

/** Whether the first line of a file ends inside of an object. */
function hasLongObject(head: Buffer): boolean {
  const [first = '', next] = beginningOf(head).split('\n', 2);
  return next !== undefined && /^\{(?:.*(?:[{[:]|[^}],))?$/.test(first.trimEnd());
}

/** No text begins with a NUL, or has one behind its first character, unless each character has two bytes. */
function refuseUtf16(head: Buffer): void {
  const mark = head.subarray(0, 2).toString('hex');
  if (mark === 'fffe' || mark === 'feff' || head.subarray(0, 2).includes(0))
    throw new BrokenSource('the file is UTF-16; expected UTF-8: --encoding utf-16le (or utf-16be) reads it');
}
