import { foundInPieces } from './chunks.ts';
import { isBlank } from './json-cursor.ts';
import {
  BadRow,
  BrokenSource,
  LONGEST_ROW,
  LongRow,
  NotJson,
  type SourceRows,
  type SourceRow,
} from './row.ts';

const LF = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACE = 0x7b;
const END_BRACE = 0x7d;
const BRACKET = 0x5b;
const END_BRACKET = 0x5d;

/** Makes the item of the text of a row: see jsonRows. */
type RowOfText = (text: Buffer) => Uint8Array;

/** Reads one object per line. The last line needs no LF. Blank lines are counted, and left out. */
export function readJsonLines(source: AsyncIterable<Buffer>, makeRow: RowOfText): SourceRows {
  let at = 0;
  let isTooLong = false;
  return foundInPieces<SourceRow>(source, (piece, rows) => {
    const { bytes, isLast } = piece;
    let from = 0;
    while (from < bytes.length || (isLast && isTooLong)) {
      const found = bytes.indexOf(LF, from);
      if (found < 0 && !isLast) break;
      const line = bytes.subarray(from, found < 0 ? bytes.length : found);
      from += line.length + 1;
      at++;
      if (isTooLong || line.length > LONGEST_ROW) rows.push({ at, problem: 'the line is longer than 16 MB' });
      else if (!isBlank(line[0] ?? LF) || !line.every(isBlank)) rows.push(rowOf(at, line, makeRow));
      isTooLong = false;
    }
    // Its beginning is not kept, so that the lines after it can still be read.
    isTooLong ||= bytes.length - from > LONGEST_ROW;
    piece.rest = isTooLong ? bytes.length : from;
  });
}

/**
 * Reads the elements of one array, whose first bracket was read: its commas, brackets and quotes alone separate them. Throws
 * BrokenSource where the array cannot go on, and behind an element that is not JSON. Those before it come first.
 */
export function readJsonArray(source: AsyncIterable<Buffer>, makeRow: RowOfText): SourceRows {
  let at = 1;
  let isInside = true;
  return foundInPieces<SourceRow>(source, (piece, rows) => {
    const { bytes, isLast } = piece;
    let from = 0;
    while (isInside) {
      const end = endOfElement(bytes, from);
      if (end - from > LONGEST_ROW) throw new LongRow(at);
      if (end === bytes.length) break;
      if (bytes[end] === END_BRACE) throw brokenArray(at, 'expected a comma or ], got "}"');
      if (bytes[end] === END_BRACKET) isInside = false;
      const element = bytes.subarray(from, end);
      from = end + 1;
      if (isInside || at > 1 || !element.every(isBlank)) rows.push(rowOf(at++, element, makeRow, true));
    }
    piece.rest = from;
    if (!isInside && !bytes.subarray(from).every(isBlank))
      throw brokenArray(at, 'expected nothing behind the array');
    if (isLast && isInside) throw new BrokenSource(`the JSON array is cut off after row ${at - 1}`);
  });
}

/** Reads objects that stand one behind the other, each over several lines. Throws BrokenSource where one is not JSON. */
export function readJsonObjects(source: AsyncIterable<Buffer>, makeRow: RowOfText): SourceRows {
  let at = 1;
  return foundInPieces<SourceRow>(source, (piece, rows) => {
    const { bytes, isLast } = piece;
    let from = 0;
    for (let end = 0; from < bytes.length; from = end) {
      end = endOfObject(bytes, from);
      if (end - from > LONGEST_ROW) throw new LongRow(at);
      if (end === bytes.length && !isLast) break;
      const text = bytes.subarray(from, end);
      if (!text.every(isBlank)) rows.push(rowOf(at++, text, makeRow, true));
    }
    piece.rest = from;
  });
}

/** The index behind the brace that ends the object. The length of the bytes when it does not end before. */
function endOfObject(bytes: Buffer, from: number): number {
  let depth = 0;
  let isInText = false;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) isInText = !isInText;
    else if (isInText) at += Number(byte === BACKSLASH);
    else if (byte === BRACE) depth++;
    else if (byte === END_BRACE && --depth <= 0) return at + 1;
  }
  return bytes.length;
}

/** The index of the comma or bracket that ends the element. The length of the bytes when it does not end there. */
function endOfElement(bytes: Buffer, from: number): number {
  let depth = 0;
  let isInText = false;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) isInText = !isInText;
    else if (isInText) at += Number(byte === BACKSLASH);
    else if (byte === BRACE || byte === BRACKET) depth++;
    else if (byte === COMMA && depth === 0) return at;
    else if ((byte === END_BRACE || byte === END_BRACKET) && --depth < 0) return at;
  }
  return bytes.length;
}

function rowOf(at: number, text: Buffer, makeRow: RowOfText, isElement = false): SourceRow {
  try {
    return { at, item: makeRow(text) };
  } catch (error) {
    if (!(error instanceof BadRow)) throw error;
    if (!(error instanceof NotJson)) return { at, problem: error.message, of: error.of };
    if (isElement) throw brokenArray(at, error.message);
    return { at, problem: `the line is not valid JSON ${error.message}` };
  }
}

function brokenArray(at: number, reason: string): BrokenSource {
  return new BrokenSource(`the JSON is invalid in or after row ${at}: ${reason}`);
}
