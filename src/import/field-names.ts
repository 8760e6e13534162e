import { nameBytes } from './document-writer.ts';
import { nameFault } from './names.ts';
import type { Target } from './targets.ts';

/** The most names that are kept from row to row. */
const MOST_NAMES = 4_096;
const QUOTE = 0x22;
/** What a name that is written with other characters than its own cannot be compared with. */
const ESCAPED = /["\\\p{Cc}]/u;

/** A field that a top-level field becomes, and its name. */
export interface FieldTarget {
  readonly role: Target['role'];
  readonly bytes: Uint8Array;
}

/** A field name that some row had. */
export interface FieldName {
  readonly text: string;
  /** The name in UTF-8, and a NUL. */
  readonly bytes: Uint8Array;
  /** Why no field may have this name. null: one may. */
  readonly fault: string | null;
  /** Whether JSON writes the name as it is, without escapes. */
  readonly isPlain: boolean;
  /** By depth: the number of the object that had the name last. */
  readonly seenIn: number[];
  /** What a top-level field of this name becomes: see JsonRows. */
  readonly targets: (readonly FieldTarget[])[];
  /** The name that came after this one in the same object, and the first in the object that is its value. Guesses. */
  next: FieldName | null;
  inner: FieldName | null;
}

/**
 * The field names of the rows so far. Rows mostly have the same names in the same order, so a name is compared with the
 * one that is expected before it is looked up.
 */
export class FieldNames {
  /** By their bytes as Latin-1. */
  readonly #known = new Map<string, FieldName>();

  /** Forgets the names when they are too many. Not to be called while an object is read. */
  prune(): void {
    if (this.#known.size > MOST_NAMES) this.#known.clear();
  }

  /** The name of these bytes, which are UTF-8. */
  of(bytes: Buffer): FieldName {
    const key = bytes.toString('latin1');
    const known = this.#known.get(key);
    if (known) return known;
    const text = bytes.toString();
    const name: FieldName = {
      text,
      bytes: nameBytes(text),
      fault: nameFault(text),
      isPlain: !ESCAPED.test(text),
      seenIn: [],
      targets: [],
      next: null,
      inner: null,
    };
    this.#known.set(key, name);
    return name;
  }
}

/** Whether a name (and the quote behind it) is at a place of a row. */
export function isAt(name: Uint8Array, row: Uint8Array, at: number): boolean {
  const last = name.length - 1;
  for (let n = 0; n < last; n++) if (name[n] !== row[at + n]) return false;
  return row[at + last] === QUOTE;
}
