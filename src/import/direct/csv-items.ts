import { BSON_TYPE } from '../../store/bson-types.ts';
import { takesEmptyText, type Reader } from '../cells.ts';
import { serialize } from '../item.ts';
import { BadRow } from '../row.ts';
import type { CsvScanner } from './csv-scanner.ts';
import { DocumentWriter, nameBytes } from './document-writer.ts';
import { haveCommonKeys, writeNewId } from './key-values.ts';
import { simpleNumber } from './simple-values.ts';

const QUOTE = 0x22;
/** Longer records are read the general way. Bytes. */
const LONGEST_RECORD = 64 * 1024;
/** An element has at most this many times the bytes of its cell, and so many bytes more beside its name. */
const GROWTH = 6;
const ROOM = 32;

interface DirectReader extends Reader {
  readonly name: string;
  readonly nameBytes: Uint8Array;
}

/**
 * Makes items of CSV records without a text for each cell. It makes an item only when the result is certain to be what
 * itemsOfTable makes of the cells. Every other row is left to that general way, which knows why it is bad.
 */
export class CsvItems {
  /** The one for the id is first. */
  readonly #readers: readonly DirectReader[];
  readonly #hasId: boolean;
  readonly #isItem: boolean;
  readonly #room: number;
  readonly #writer = new DocumentWriter();
  readonly #places = { id: -1, category: -1, price: -1, field: -1 };

  private constructor(readers: readonly Reader[]) {
    const named = readers.map((reader) => {
      const name = reader.path.join('.');
      return { ...reader, name, nameBytes: nameBytes(name) };
    });
    const isId = ({ role }: Reader) => role === 'id';
    this.#readers = [...named.filter(isId), ...named.filter((reader) => !isId(reader))];
    this.#hasId = readers.some(isId);
    this.#isItem = readers.some(({ role }) => role === 'price');
    this.#room = named.reduce((sum, reader) => sum + reader.nameBytes.length + ROOM, 2 * ROOM);
  }

  /** null: a table with nested documents needs the general way for every row. */
  static of(readers: readonly Reader[]): CsvItems | null {
    return readers.every(({ path }) => path.length === 1) ? new CsvItems(readers) : null;
  }

  /** The item of a record, as BSON. null: the general way must make it. */
  itemOf(record: CsvScanner): Uint8Array | null {
    const length = record.next - record.start;
    if (length > LONGEST_RECORD) return null;
    const [writer, places] = [this.#writer, this.#places];
    writer.begin(GROWTH * length + this.#room);
    places.id = places.category = places.price = -1;
    if (!this.#hasId) writeNewId(writer);
    for (const reader of this.#readers) if (!this.#write(reader, record)) return null;
    return haveCommonKeys(writer, places, this.#isItem) ? writer.end() : null;
  }

  #write(reader: DirectReader, record: CsvScanner): boolean {
    const { index, form, role, nameBytes: name } = reader;
    const [from = 0, to = 0] = [record.starts[index], record.ends[index]];
    if (record.isMissing(index)) return reader.whenEmpty === undefined;
    if (from === to && !takesEmptyText(reader)) return reader.whenEmpty === undefined;
    this.#places[role] = this.#writer.at;
    if (form === 'text') {
      this.#text(name, record.bytes, from, to, record.hasQuotes[index] === 1);
      return true;
    }
    const number = form === null ? NaN : simpleNumber(record.bytes, from, to);
    if (form === 'integer' ? !Number.isSafeInteger(number) : Number.isNaN(number))
      return this.#other(reader, record.text(index), to - from);
    this.#writer.number(name, number);
    return true;
  }

  /** Writes a text. With `hasQuotes`, each quote in it is written twice. */
  #text(name: Uint8Array, source: Uint8Array, from: number, to: number, hasQuotes: boolean): void {
    const writer = this.#writer;
    writer.element(BSON_TYPE.string, name);
    const start = writer.open();
    const { bytes } = writer;
    let at = writer.at;
    for (let n = from; n < to; n++) {
      const byte = source[n] ?? 0;
      bytes[at++] = byte;
      if (hasQuotes && byte === QUOTE) n++;
    }
    writer.at = at;
    writer.closeText(start);
  }

  /** Writes any value as the general way does. `length`: the number of bytes of the cell. */
  #other(
    { name, nameBytes: { length: nameLength }, read }: DirectReader,
    cell: string,
    length: number,
  ): boolean {
    try {
      const element = serialize(new Map([[name, read(cell)]])).subarray(4, -1);
      if (element.length > GROWTH * length + nameLength + ROOM) return false;
      this.#writer.bytes.set(element, this.#writer.at);
      this.#writer.at += element.length;
      return true;
    } catch (error) {
      if (error instanceof BadRow) return false; // the general way says which fault is the first
      throw error;
    }
  }
}
