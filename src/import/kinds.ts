import { Decimal128, Long, ObjectId, UUID } from '../store/bson.ts';
import { shownValue, toDecimal128 } from '../store/decimal.ts';
import { objectIdOf } from '../store/value-texts.ts';
import { quoted } from '../terminal/text.ts';
import type { DocumentWriter } from './document-writer.ts';
import { pathOf } from './fields.ts';
import { JsonReader, type Declared } from './json-reader.ts';
import { booleanOf, booleansOf, dateOfCell, type Notation } from './notation.ts';
import { anyUuidOf, decimalOf, numberOf, numberOfCell, simpleNumber, withDecimalPoint } from './numbers.ts';
import { BadRow, NotJson } from './row.ts';

interface KindRules {
  /** The value of a text. Throws BadRow when it is none of this kind, or when the value could not keep all of it. */
  readonly read: (text: string, notation: Notation) => unknown;
  /** The value that a JSON value other than a text may become. undefined: this one may not. */
  readonly fit: (value: unknown) => unknown;
}

const BOOLEANS = booleansOf(['true/false', 't/f', 'yes/no', 'y/n', '1/0']);

/** What a column or a field can be declared as. A JSON value is written by its reader: see writeKind. */
const DECLARED = {
  string: {
    read: (text) => text,
    // An integer has one text. A fraction has several (1.5, 1.50), and it is no longer known which one it was.
    fit: (value) => (Number.isSafeInteger(value) || value instanceof Long ? String(value) : undefined),
  },
  number: {
    read: (text, notation) => inNotation(text, notation, numberOf),
    fit: (value) => (typeof value === 'number' ? value : (asA(Long, value) ?? asA(Decimal128, value))),
  },
  decimal: {
    read: (text, notation) => inNotation(text, notation, decimalOf),
    fit: (value) => {
      if (typeof value === 'number') return toDecimal128(shownValue(value));
      return value instanceof Long ? Decimal128.fromString(String(value)) : asA(Decimal128, value);
    },
  },
  date: { read: (text, notation) => dateOf(text, false, notation), fit: (value) => asA(Date, value) },
  // Its times need no zone.
  'date-utc': { read: (text, notation) => dateOf(text, true, notation), fit: (value) => asA(Date, value) },
  boolean: {
    read: (text, notation) =>
      booleanOf(text, notation) ??
      BOOLEANS.get(text.trim().toLowerCase()) ??
      refuse(text, 'is not true or false'),
    fit: (value) => (typeof value === 'boolean' ? value : undefined),
  },
  objectid: {
    read: (text) => objectIdOf(text.trim()) ?? refuse(text, 'is not an ObjectId of 24 hexadecimal digits'),
    fit: (value) => asA(ObjectId, value),
  },
  uuid: {
    read: (text) => anyUuidOf(text.trim()) ?? refuse(text, 'is not a UUID'),
    fit: (value) => asA(UUID, value),
  },
  json: { read: (text) => text, fit: (value) => value },
} as const satisfies Readonly<Record<string, KindRules>>;

export type Kind = keyof typeof DECLARED;
export const KINDS = Object.keys(DECLARED) as readonly Kind[];

/** Declared kinds by the name of a column, or by the path of a JSON field. */
export type Types = ReadonlyMap<string, Kind>;

/** What the cells of a column without a declared kind may be. A guessed date is one in the forms of the notation. */
const GUESSED = {
  /** A word of --booleans. */
  word: {
    read: (text, notation) => booleanOf(text, notation) ?? refuse(text, 'is no word of --booleans'),
  },
  /** A number as JSON writes it: see numberOfCell. Blanks around it are not part of it. */
  'plain number': {
    read: (text, { hasDecimalComma }) => {
      const pointed = !hasDecimalComma ? text : text.trim() === text ? withDecimalPoint(text) : null;
      return (pointed === null ? null : numberOfCell(pointed)) ?? refuse(text, 'is not a number');
    },
  },
  /**
   * All ids of one file are of one kind, integers or texts. A URL would find only some ids of a mix (`8`, `007`), since
   * the text in a URL is read as the one type that a collection's ids have.
   */
  integer: {
    read: (text) => {
      const value = numberOfCell(text);
      return value instanceof Long || Number.isSafeInteger(value) ? value : refuse(text, 'is not an integer');
    },
  },
} as const satisfies Readonly<Record<string, Pick<KindRules, 'read'>>>;
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
  { hasDecimalComma }: Notation,
  bytes: Uint8Array,
  from: number,
  to: number,
): number {
  const isInteger = kind === 'integer';
  if (!isInteger && (hasDecimalComma || (kind !== 'number' && kind !== 'plain number'))) return NaN;
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
  else writer.value(name, TABLE[kind].read(text, notation));
}

export function canRead(kind: CellKind, text: string, notation: Notation): boolean {
  try {
    TABLE[kind].read(text, notation);
    return true;
  } catch (error) {
    if (error instanceof BadRow) return false;
    throw error;
  }
}

/** Writes the JSON value that a text states as an element. Throws BadRow. */
function writeJson(writer: DocumentWriter, name: Uint8Array, text: string): void {
  const reader = new JsonReader(writer);
  try {
    reader.begin(Buffer.from(text));
    reader.value(name, { inner: null }, 2, null);
    reader.end();
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    throw new BadRow(`${quoted(text)} is not valid JSON ${error.message}`);
  }
}

function dateOf(text: string, isUtc: boolean, notation: Notation): Date {
  const date = dateOfCell(text, isUtc, notation);
  return typeof date === 'string' ? refuse(text, date) : date;
}

function asA<Type>(type: new (...args: never[]) => Type, value: unknown): Type | undefined {
  return value instanceof type ? value : undefined;
}

/** The number that `read` finds in a text, or in one with a decimal comma. */
function inNotation<T>(text: string, { hasDecimalComma }: Notation, read: (text: string) => T | null): T {
  const pointed = hasDecimalComma ? withDecimalPoint(text) : text;
  const value = pointed === null ? null : read(pointed);
  return value ?? refuse(text, `is not a number${hasDecimalComma ? ' as 1.234,56 or 1234,56' : ''}`);
}

function refuse(text: string, reason: string): never {
  throw new BadRow(`${quoted(text)} ${reason}`);
}

/** JSON has its own notation of numbers. */
const PLAIN: Notation = { hasDecimalComma: false };

interface Node extends Declared {
  fit: Declared['fit'];
  isWhole: boolean;
  readonly inner: Map<string, Node>;
}

/** The kinds that were declared for the fields of JSON rows by their paths. Paths lead through arrays. */
export class FieldTypes {
  readonly #fields = new Map<string, Node>();
  readonly #unseen: Set<string>;

  constructor(types: Types) {
    this.#unseen = new Set(types.keys());
    for (const [name, kind] of types) {
      let fields = this.#fields;
      let node: Node | undefined;
      for (const part of pathOf(name)) {
        node = fields.get(part) ?? { fit: null, isWhole: false, inner: new Map() };
        fields.set(part, node);
        fields = node.inner;
      }
      if (node) Object.assign(node, { fit: this.#fitting(name, kind), isWhole: kind === 'json' });
    }
  }

  /** The declared names that no row had so far. */
  get unseen(): readonly string[] {
    return [...this.#unseen];
  }

  /** What was declared for a top-level field. */
  of(field: string): Declared | null {
    return this.#fields.size === 0 ? null : (this.#fields.get(field) ?? null);
  }

  /** Gives elements a kind: a string is read as that kind, and a value of that kind stays, as null does. */
  #fitting(name: string, kind: Kind): Declared['fit'] {
    return (writer: DocumentWriter, bytes: Uint8Array, offset: number) => {
      this.#unseen.delete(name);
      const value = writer.valueAt(offset);
      if (value === null || (typeof value === 'string' && kind === 'string')) return;
      try {
        const fitting = typeof value === 'string' ? undefined : DECLARED[kind].fit(value);
        if (fitting === value) return;
        if (fitting === undefined && typeof value !== 'string')
          throw new BadRow(`the value is not a ${kind}, and not a string that states one`);
        writer.rewind(offset);
        if (typeof value === 'string') writeKind(writer, bytes, value, kind, PLAIN);
        else writer.value(bytes, fitting);
      } catch (error) {
        throw error instanceof BadRow ? error.in('field', name) : error;
      }
    };
  }
}
