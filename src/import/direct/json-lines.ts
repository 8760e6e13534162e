import { isUtf8 } from 'node:buffer';
import type { Columns } from '../item.ts';
import { DocumentWriter } from './document-writer.ts';
import { FieldNames, haveOneRoleEach, type FieldName } from './field-names.ts';
import { JsonValues } from './json-values.ts';
import { CATEGORY, haveCommonKeys, ID, PRICE, writeNewId } from './key-values.ts';

/** Longer lines are read the general way. Bytes. */
const LONGEST_LINE = 64 * 1024;
/**
 * A document has at most this many times the bytes of its line: `1,` in an array becomes a type, an index of five digits
 * with a NUL, and an int32. In addition a row may get an id and longer names.
 */
const GROWTH = 6;
const ROOM = 256;

/**
 * Makes items of lines of JSON without JavaScript objects: from the bytes of the text to the bytes of BSON. It takes a
 * line only when the result is certain to be what itemOfObject makes of the parsed line. Everything else is left to that
 * general way: all that is not valid, duplicate names, numbers with many digits or an exponent, most of Extended JSON,
 * rare ids.
 */
export class JsonLines {
  readonly #columns: Columns;
  readonly #writer = new DocumentWriter();
  readonly #values: JsonValues;
  /** The name that is expected first in a row. */
  readonly #root = { inner: null };
  readonly #writeField = (name: FieldName): boolean => this.#field(name);
  /** Where the elements with rules of their own are in the document. -1: the row has none so far. */
  readonly #places = { id: -1, category: -1, price: -1 };
  #idEnd = -1;

  private constructor(columns: Columns) {
    this.#columns = columns;
    this.#values = new JsonValues(this.#writer, new FieldNames(columns));
  }

  /** null: with these columns the general way must read every line. */
  static under(columns: Columns): JsonLines | null {
    return haveOneRoleEach(columns) ? new JsonLines(columns) : null;
  }

  /** The item of a line, as BSON. null: the general way must read the line. */
  itemOf(line: Uint8Array): Uint8Array | null {
    if (line.length > LONGEST_LINE) return null;
    const [writer, values, places] = [this.#writer, this.#values, this.#places];
    writer.begin(GROWTH * line.length + ROOM);
    values.begin(line);
    places.id = places.category = places.price = -1;
    if (!values.members(this.#root, 1, this.#writeField) || !values.isAtEnd) return null;
    if (!writer.isAscii && !isUtf8(line)) return null;
    if (!haveCommonKeys(writer, places, this.#columns.price !== null)) return null;
    if (places.id < 0 && !this.#newId()) return null;
    writer.moveToFront(places.id, this.#idEnd);
    return writer.end();
  }

  /** Writes a top-level field. */
  #field(name: FieldName): boolean {
    const [writer, values, places] = [this.#writer, this.#values, this.#places];
    const start = writer.at;
    switch (name.role) {
      case 'field':
        return values.value(name.bytes, name, 2);
      case 'none': {
        const isValid = values.value(name.bytes, name, 2);
        writer.at = start;
        return isValid;
      }
      case 'category':
        places.category = start;
        return values.value(CATEGORY, name, 2);
      case 'price':
        places.price = start;
        return values.value(PRICE, name, 2);
      case 'id-or-field':
        return places.id >= 0 ? values.value(name.bytes, name, 2) : this.#id(name);
      case 'id':
        return places.id < 0 && this.#id(name); // an `id` before it was taken for the id
    }
  }

  #id(name: FieldName): boolean {
    this.#places.id = this.#writer.at;
    const isValid = this.#values.value(ID, name, 2);
    this.#idEnd = this.#writer.at;
    return isValid;
  }

  /** Gives a row an id of its own. False when the command names its field. */
  #newId(): boolean {
    if (this.#columns.id !== null) return false;
    this.#places.id = this.#writer.at;
    writeNewId(this.#writer);
    this.#idEnd = this.#writer.at;
    return true;
  }
}
