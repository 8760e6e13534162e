import { BSON_TYPE } from '../store/values/bson-types.ts';
import type { DocumentWriter } from './document-writer.ts';
import type { Notation } from './notation.ts';

const OBJECT_ID = Buffer.from('{"$oid":"');
const DATE = Buffer.from('{"$date":"');
const END = Buffer.from('"}');
const OBJECT_ID_DIGITS = 24;
/** The lengths of a time in UTC, such as 2026-01-31T12:00:00Z, and with milliseconds, .000. Bytes. */
const SECONDS_BYTES = 20;
const MILLISECONDS_BYTES = 24;
const DOT_AT = SECONDS_BYTES - 1;
const ZERO = 0x30;
const DOT = 0x2e;
const HYPHEN = 0x2d;
const COLON = 0x3a;
const T = 0x54;
const Z = 0x5a;
/** In place of a number whose bytes are no digits. It is above all limits. */
const NO_NUMBER = 1_000_000;
/** Date.UTC takes years below for those of the last century. */
const FIRST_YEAR = 100;
const LAST_YEAR = 9_999;
/** The days of each month. 0: there is none. February has one more in some years. */
const DAYS = Uint8Array.of(0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31);
const FEBRUARY = 2;
/** The value of each byte as a hexadecimal digit. -1: it is none. */
const HEX = Int8Array.from({ length: 256 }, (_, byte) => {
  const digit = parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(digit) ? -1 : digit;
});

/**
 * Writes the Extended JSON at an index of a row when it is one of the two most frequent forms, as mongoexport writes them:
 * `{"$oid":...}`, or `{"$date":...}` with a time in UTC on a day that each month has. Returns the index behind it, or the same
 * index for any other value. It reads bytes: a text and an expression for each value were a sixth of what a row costs.
 */
export function writeCommonType(writer: DocumentWriter, name: Uint8Array, row: Buffer, at: number): number {
  if (hasBytes(row, at, OBJECT_ID)) return writeObjectId(writer, name, row, at);
  if (!hasBytes(row, at, DATE)) return at;
  const from = at + DATE.length;
  const end = from + lengthAt(row, from);
  const time = hasBytes(row, end, END) ? commonTime(row, from, end) : null;
  if (time === null) return at;
  writer.date(name, time);
  return end + END.length;
}

/** Writes a cell of CSV as a kind when it has one of the same forms. Returns false, with nothing written, for any other one. */
export function writeCommonCell(
  writer: DocumentWriter,
  name: Uint8Array,
  kind: KindName,
  cell: CellBytes,
  notation: Notation,
): boolean {
  if (kind === 'objectid') return isLongEnough(cell) && putObjectId(writer, name, cell.bytes, cell.from);
  const time = timeOfCell(kind, cell, notation);
  if (time === null) return false;
  writer.date(name, time);
  return true;
}

/** Whether writeCommonCell writes the cell. */
export function isCommonCell(kind: KindName, cell: CellBytes, notation: Notation): boolean {
  if (kind === 'objectid') return isLongEnough(cell) && isHex(cell.bytes, cell.from, cell.to);
  return timeOfCell(kind, cell, notation) !== null;
}

/** What a column is read as: see kinds.ts. */
type KindName = string;

/** The bytes of a cell. */
interface CellBytes {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
}

function isLongEnough({ from, to }: CellBytes): boolean {
  return to - from === OBJECT_ID_DIGITS;
}

/** Null also where dates have forms of their own. */
function timeOfCell(kind: KindName, { bytes, from, to }: CellBytes, { dates }: Notation): number | null {
  return !dates && (kind === 'date' || kind === 'date-utc') ? commonTime(bytes, from, to) : null;
}

function writeObjectId(writer: DocumentWriter, name: Uint8Array, row: Buffer, at: number): number {
  const from = at + OBJECT_ID.length;
  const end = from + OBJECT_ID_DIGITS;
  return hasBytes(row, end, END) && putObjectId(writer, name, row, from) ? end + END.length : at;
}

/** Writes an ObjectId from its digits. Returns false, with nothing written, when they are none. */
function putObjectId(writer: DocumentWriter, name: Uint8Array, row: Uint8Array, from: number): boolean {
  const { offset } = writer;
  writer.element(BSON_TYPE.objectId, name);
  const { bytes } = writer;
  let { at } = writer;
  let all = 0;
  for (let digit = from; digit < from + OBJECT_ID_DIGITS; digit += 2) {
    const byte = (hexAt(row, digit) << 4) | hexAt(row, digit + 1); // of -1, it is below 0
    all |= byte;
    bytes[at++] = byte;
  }
  writer.at = at;
  if (all < 0) writer.rewind(offset);
  return all >= 0;
}

function isHex(row: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (hexAt(row, at) < 0) return false;
  return true;
}

function lengthAt(row: Uint8Array, from: number): number {
  return row[from + DOT_AT] === DOT ? MILLISECONDS_BYTES : SECONDS_BYTES;
}

/** The time that these bytes are, all of them: milliseconds since 1970. null: they are none, or a rare one. */
function commonTime(row: Uint8Array, from: number, to: number): number | null {
  const length = lengthAt(row, from);
  const isCommon =
    to - from === length &&
    row[from + 4] === HYPHEN &&
    row[from + 7] === HYPHEN &&
    row[from + 10] === T &&
    row[from + 13] === COLON &&
    row[from + 16] === COLON &&
    row[to - 1] === Z;
  if (!isCommon) return null;
  const day = dayAt(row, from);
  const hours = twoDigits(row, from + 11);
  const minutes = twoDigits(row, from + 14);
  const seconds = twoDigits(row, from + 17);
  const milliseconds =
    length === MILLISECONDS_BYTES ? twoDigits(row, from + 20) * 10 + digitAt(row, from + 22) : 0;
  if (day === null || hours > 23 || minutes > 59 || seconds > 59 || milliseconds > 999) return null;
  return day + ((hours * 60 + minutes) * 60 + seconds) * 1_000 + milliseconds;
}

/** When the day begins that is at an index. */
function dayAt(row: Uint8Array, at: number): number | null {
  const year = twoDigits(row, at) * 100 + twoDigits(row, at + 2);
  const month = twoDigits(row, at + 5);
  const day = twoDigits(row, at + 8);
  if (year < FIRST_YEAR || year > LAST_YEAR || month > 12 || day < 1) return null;
  const isLeap = month === FEBRUARY && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  if (day > (DAYS[month] ?? 0) + Number(isLeap)) return null;
  return Date.UTC(year, month - 1, day);
}

function hasBytes(row: Uint8Array, at: number, bytes: Uint8Array): boolean {
  for (let n = 0; n < bytes.length; n++) if (row[at + n] !== bytes[n]) return false;
  return true;
}

function twoDigits(row: Uint8Array, at: number): number {
  return digitAt(row, at) * 10 + digitAt(row, at + 1);
}

function digitAt(row: Uint8Array, at: number): number {
  const digit = (row[at] ?? 0) - ZERO;
  return digit >= 0 && digit <= 9 ? digit : NO_NUMBER;
}

function hexAt(row: Uint8Array, at: number): number {
  return HEX[row[at] ?? 0] ?? -1;
}
