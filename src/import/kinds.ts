import { Long } from '../store/values/bson.ts';
import { objectIdOf } from '../store/values/value-texts.ts';
import { quoted } from '../terminal/text.ts';
import type { DocumentWriter } from './document-writer.ts';
import { JsonReader } from './json-reader.ts';
import { withoutTwice } from './json-twice.ts';
import { booleanOf, booleansOf, dateOfCell, type Notation } from './notation.ts';
import { anyUuidOf, decimalOf, numberOf, numberOfCell, simpleNumber } from './numbers.ts';
import { BadRow, NotJson } from './row.ts';

/** The value of a text. Throws BadRow when it is none of a kind, or when the value could not keep all of it. */
type ReadText = (text: string, notation: Notation) => unknown;

const BOOLEANS = booleansOf(['true/false', 't/f', 'yes/no', 'y/n', '1/0']);

/** What a column or a field can be declared as. A JSON value is written by its reader: see writeKind. */
const DECLARED = {
  string: (text) => text,
  number: (text, notation) => inNotation(text, notation, numberOf),
  decimal: (text, notation) => inNotation(text, notation, decimalOf),
  date: (text, notation) => dateOf(text, false, notation),
  // Its times need no zone.
  'date-utc': (text, notation) => dateOf(text, true, notation),
  boolean: (text, notation) =>
    booleanOf(text, notation) ??
    BOOLEANS.get(text.trim().toLowerCase()) ??
    refuse(text, 'is not true or false'),
  objectid: (text) => objectIdOf(text.trim()) ?? refuse(text, 'is not an ObjectId of 24 hexadecimal digits'),
  uuid: (text) => anyUuidOf(text.trim()) ?? refuse(text, 'is not a UUID'),
  json: (text) => text,
} as const satisfies Readonly<Record<string, ReadText>>;

export type Kind = keyof typeof DECLARED;
export const KINDS = Object.keys(DECLARED) as readonly Kind[];

/** Declared kinds by the name of a column, or by the path of a JSON field. */
export type Types = ReadonlyMap<string, Kind>;

/** What the cells of a column without a declared kind may be. A guessed date is one in the forms of the notation. */
const GUESSED = {
  /** A word of --booleans. */
  word: (text, notation) => booleanOf(text, notation) ?? refuse(text, 'is no word of --booleans'),
  /** A number as JSON writes it: see numberOfCell. Blanks around it are not part of it. */
  'plain number': (text, { numbers }) => {
    const pointed = !numbers ? text : text.trim() === text ? numbers.pointed(text) : null;
    return (pointed === null ? null : numberOfCell(pointed)) ?? refuse(text, 'is not a number');
  },
  /**
   * All ids of one file are of one kind, integers or texts. A URL would find only some ids of a mix (`8`, `007`), since
   * the text in a URL is read as the one type that a collection's ids have.
   */
  integer: (text) => {
    const value = numberOfCell(text);
    return value instanceof Long || Number.isSafeInteger(value) ? value : refuse(text, 'is not an integer');
  },
} as const satisfies Readonly<Record<string, ReadText>>;
const TABLE = { ...DECLARED, ...GUESSED };

/** How the cells of a column are read: as the kind that was declared, or as the one that they all seemed to have. */
export type CellKind = keyof typeof TABLE;

/** The kind by the name that --type has for it. */
export function nameOfKind(kind: CellKind): Kind {
  if (kind === 'word') return 'boolean';
  return kind === 'integer' || kind === 'plain number' ? 'number' : kind;
}

/** The value of a cell of a kind, if it is a number that its bytes show at once. NaN: its text decides. */
export function simpleCell(
  kind: CellKind,
  { numbers }: Notation,
  bytes: Uint8Array,
  from: number,
  to: number,
): number {
  const isInteger = kind === 'integer';
  if (!isInteger && (numbers?.hasDecimalComma || (kind !== 'number' && kind !== 'plain number'))) return NaN;
  const number = simpleNumber(bytes, from, to);
  return isInteger && !Number.isSafeInteger(number) ? NaN : number;
}

/** Writes a text as an element of a kind. Throws BadRow when the text is none of that kind. */
export function writeKind(
  writer: DocumentWriter,
  name: Uint8Array,
  text: string,
  kind: CellKind,
  notation: Notation,
): void {
  if (kind === 'json') writeJson(writer, name, text);
  else writer.value(name, TABLE[kind](text, notation));
}

export function canRead(kind: CellKind, text: string, notation: Notation): boolean {
  try {
    TABLE[kind](text, notation);
    return true;
  } catch (error) {
    if (error instanceof BadRow) return false;
    throw error;
  }
}

/** Writes the JSON value that a text states as an element. Throws BadRow. */
function writeJson(writer: DocumentWriter, name: Uint8Array, text: string): void {
  const reader = new JsonReader(writer);
  const { offset } = writer;
  try {
    reader.begin(Buffer.from(text));
    reader.value(name, 2, null);
    reader.end();
    if (!reader.hasTwice) return;
    writer.rewind(offset);
    writeJson(writer, name, withoutTwice(text));
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    throw new BadRow(`${quoted(text)} is not valid JSON ${error.message}`);
  }
}

function dateOf(text: string, isUtc: boolean, notation: Notation): Date {
  const date = dateOfCell(text, isUtc, notation);
  return typeof date === 'string' ? refuse(text, date) : date;
}

/** The number that `read` finds in a text, as the notation writes it. */
function inNotation<T>(text: string, { numbers }: Notation, read: (text: string) => T | null): T {
  const pointed = numbers ? numbers.pointed(text) : text;
  const value = pointed === null ? null : read(pointed);
  return value ?? refuse(text, `is not a number${numbers ? ` as ${numbers.example}` : ''}`);
}

function refuse(text: string, reason: string): never {
  throw new BadRow(`${quoted(text)} ${reason}`);
}
