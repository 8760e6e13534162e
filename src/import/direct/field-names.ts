import { isUtf8 } from 'node:buffer';
import { keepsItsName, type Columns } from '../item.ts';
import { nameFault } from '../values.ts';
import { nameBytes } from './document-writer.ts';

/** The most names that are kept, and the longest of them in bytes. A line with another name is read the general way. */
export const MOST_NAMES = 4_096;
const LONGEST_NAME = 256;

const [QUOTE, BACKSLASH, SPACE] = [0x22, 0x5c, 0x20];

/** What becomes of a top-level field. `id-or-field`: the id, unless the row has an `_id`. */
export type Role = 'id' | 'id-or-field' | 'category' | 'price' | 'field' | 'none';

/** A field name that some row had. */
export interface FieldName {
  readonly number: number;
  /** The name in UTF-8, and a NUL. */
  readonly bytes: Uint8Array;
  readonly role: Role;
  /** The name that came after this one in the same object, and the first in the object that is its value. Guesses. */
  next: FieldName | null;
  inner: FieldName | null;
}

/**
 * The field names of the rows so far. Rows mostly have the same names in the same order, so a name is compared with the
 * one that is expected before it is looked up.
 */
export class FieldNames {
  readonly #columns: Columns;
  /** By their bytes as Latin-1. null: a line with it is read the general way. */
  readonly #known = new Map<string, FieldName | null>();

  constructor(columns: Columns) {
    this.#columns = columns;
  }

  /** The name that begins at `at`, behind its quote. null when the general way must read it. */
  find(line: Uint8Array, at: number, guess: FieldName | null): FieldName | null {
    if (guess && isAt(guess.bytes, line, at)) return guess;
    let end = at;
    for (; line[end] !== QUOTE; end++) {
      const byte = line[end] ?? 0;
      if (byte < SPACE || byte === BACKSLASH || end - at >= LONGEST_NAME) return null;
    }
    const bytes = Buffer.from(line.buffer, line.byteOffset + at, end - at);
    const key = bytes.toString('latin1');
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#known.size >= MOST_NAMES) return null;
    const name = isUtf8(bytes) ? this.#nameOf(bytes.toString()) : null;
    this.#known.set(key, name);
    return name;
  }

  #nameOf(text: string): FieldName | null {
    if (nameFault(text) !== null) return null;
    const role = this.#roleOf(text);
    return { number: this.#known.size, bytes: nameBytes(text), role, next: null, inner: null };
  }

  #roleOf(name: string): Role {
    const { id, category, price } = this.#columns;
    if (name === (id ?? '_id')) return 'id';
    if (name === category) return 'category';
    if (name === price) return 'price';
    if (id === null && name === 'id') return 'id-or-field';
    return keepsItsName(name, id ?? '_id', this.#columns) ? 'field' : 'none';
  }
}

/** Whether no field of a row becomes two fields of its item. */
export function haveOneRoleEach({ id, category, price }: Columns): boolean {
  const named = [...(id === null ? ['_id', 'id'] : [id]), category, price].filter((name) => name !== null);
  return new Set(named).size === named.length;
}

/** Whether a name (and the quote behind it) is at a place of a line. */
function isAt(name: Uint8Array, line: Uint8Array, at: number): boolean {
  const last = name.length - 1;
  for (let n = 0; n < last; n++) if (name[n] !== line[at + n]) return false;
  return line[at + last] === QUOTE;
}
