import { BSON_TYPE } from '../store/values/bson-types.ts';
import type { DocumentWriter } from './document-writer.ts';
import type { Notation } from './notation.ts';

const OBJECT_ID = Buffer.from('{"$oid":"');
const DATE = Buffer.from('{"$date":"');
const END = Buffer.from('"}');
const OBJECT_ID_DIGITS = 24;
/** The forms of a time in UTC. Zeros are digits. */
const SECONDS = Buffer.from('0000-00-00T00:00:00Z');
const MILLISECONDS = Buffer.from('0000-00-00T00:00:00.000Z');
const DOT_AT = SECONDS.length - 1;
const ZERO = 0x30;
const NINE = 0x39;
const DOT = 0x2e;
/** Date.UTC takes years below for those of the last century. */
const FIRST_YEAR = 100;
/** The days that each month has. */
const LAST_DAY = 28;
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
  const end = from + formAt(row, from).length;
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
  const time = timeOfCell(kind, cell, notation);
  if (time !== null) writer.date(name, time);
  else if (isObjectId(kind, cell)) putObjectId(writer, name, cell.bytes, cell.from);
  else return false;
  return true;
}

/** Whether writeCommonCell writes the cell. */
export function isCommonCell(kind: KindName, cell: CellBytes, notation: Notation): boolean {
  return isObjectId(kind, cell) || timeOfCell(kind, cell, notation) !== null;
}

/** What a column is read as: see kinds.ts. */
type KindName = string;

/** The bytes of a cell. */
interface CellBytes {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
}

function isObjectId(kind: KindName, { bytes, from, to }: CellBytes): boolean {
  return kind === 'objectid' && to - from === OBJECT_ID_DIGITS && isHex(bytes, from, to);
}

/** Null also where dates have forms of their own. */
function timeOfCell(kind: KindName, { bytes, from, to }: CellBytes, { dates }: Notation): number | null {
  return !dates && (kind === 'date' || kind === 'date-utc') ? commonTime(bytes, from, to) : null;
}

function writeObjectId(writer: DocumentWriter, name: Uint8Array, row: Buffer, at: number): number {
  const from = at + OBJECT_ID.length;
  const end = from + OBJECT_ID_DIGITS;
  if (!hasBytes(row, end, END) || !isHex(row, from, end)) return at;
  putObjectId(writer, name, row, from);
  return end + END.length;
}

function putObjectId(writer: DocumentWriter, name: Uint8Array, row: Uint8Array, from: number): void {
  writer.element(BSON_TYPE.objectId, name);
  for (let digit = from; digit < from + OBJECT_ID_DIGITS; digit += 2)
    writer.bytes[writer.at++] = (hexAt(row, digit) << 4) | hexAt(row, digit + 1);
}

function isHex(row: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (hexAt(row, at) < 0) return false;
  return true;
}

function formAt(row: Uint8Array, from: number): Uint8Array {
  return row[from + DOT_AT] === DOT ? MILLISECONDS : SECONDS;
}

/** The time that these bytes are, all of them. null: they are none, or a rare one. */
function commonTime(row: Uint8Array, from: number, to: number): number | null {
  const form = formAt(row, from);
  const isWhole = to - from === form.length && hasForm(row, from, form);
  return isWhole ? timeAt(row, from, form === MILLISECONDS) : null;
}

/** Milliseconds since 1970 of a time in one of the forms. null: it is no time, or a rare one. */
function timeAt(row: Uint8Array, at: number, hasMilliseconds: boolean): number | null {
  const year = twoDigits(row, at) * 100 + twoDigits(row, at + 2);
  const month = twoDigits(row, at + 5);
  const day = twoDigits(row, at + 8);
  const hours = twoDigits(row, at + 11);
  const minutes = twoDigits(row, at + 14);
  const seconds = twoDigits(row, at + 17);
  const milliseconds = hasMilliseconds ? twoDigits(row, at + 20) * 10 + (row[at + 22] ?? ZERO) - ZERO : 0;
  const isDay = year >= FIRST_YEAR && month >= 1 && month <= 12 && day >= 1 && day <= LAST_DAY;
  const isTime = hours <= 23 && minutes <= 59 && seconds <= 59;
  return isDay && isTime ? Date.UTC(year, month - 1, day, hours, minutes, seconds, milliseconds) : null;
}

/** Whether the bytes from an index on are digits where the form has zeros, and else its own. */
function hasForm(row: Uint8Array, at: number, form: Uint8Array): boolean {
  for (let n = 0; n < form.length; n++) {
    const byte = row[at + n] ?? 0;
    if (form[n] === ZERO ? byte < ZERO || byte > NINE : byte !== form[n]) return false;
  }
  return true;
}

function hasBytes(row: Uint8Array, at: number, bytes: Uint8Array): boolean {
  for (let n = 0; n < bytes.length; n++) if (row[at + n] !== bytes[n]) return false;
  return true;
}

function twoDigits(row: Uint8Array, at: number): number {
  return ((row[at] ?? ZERO) - ZERO) * 10 + (row[at + 1] ?? ZERO) - ZERO;
}

function hexAt(row: Uint8Array, at: number): number {
  return HEX[row[at] ?? 0] ?? -1;
}
