import { isBlank } from './json-cursor.ts';
import { BrokenSource, LONGEST_ROW } from './row.ts';

const [LF, QUOTE, BACKSLASH, COMMA] = [0x0a, 0x22, 0x5c, 0x2c];
const [BRACE, END_BRACE, BRACKET, END_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];

/** The text of a row, and its number from 1. `bytes` is null when the text is too long. */
export interface RowText {
  readonly at: number;
  readonly bytes: Buffer | null;
}

/** Splits chunks of bytes into the texts of rows. A chunk may end anywhere, also inside a character. */
export interface RowSplitter {
  /** What the rows are counted in. */
  readonly unit: 'line' | 'row';
  /** The rows that end in this chunk. They are views of the chunk, or copies when they began in an earlier one. */
  push(chunk: Buffer): Iterable<RowText>;
  /** The row that the end of the source completes. */
  end(): Iterable<RowText>;
}

/** The pieces of a row. For a row that is too long, only the length is kept, so that those after it can still be read. */
class Pieces {
  #parts: Buffer[] = [];
  length = 0;
  count = 0;

  add(part: Buffer): void {
    this.length += part.length;
    if (this.length > LONGEST_ROW) this.#parts = [];
    else this.#parts.push(part);
  }

  /** The row that these pieces are. */
  take(): RowText {
    const [only] = this.#parts;
    const whole = this.#parts.length === 1 && only ? only : Buffer.concat(this.#parts);
    const row = { at: ++this.count, bytes: this.length > LONGEST_ROW ? null : whole };
    this.#parts = [];
    this.length = 0;
    return row;
  }
}

/** Splits newline-delimited JSON at LF. The last line needs no LF. Blank lines are counted, and left out. */
export class JsonLines implements RowSplitter {
  readonly unit = 'line';
  readonly #line = new Pieces();

  *push(chunk: Buffer): Generator<RowText> {
    let from = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, from)) {
      this.#line.add(chunk.subarray(from, end));
      from = end + 1;
      const line = this.#line.take();
      if (!isBlankText(line.bytes)) yield line;
    }
    this.#line.add(chunk.subarray(from));
  }

  *end(): Generator<RowText> {
    const line = this.#line.take();
    if (!isBlankText(line.bytes)) yield line;
  }
}

/**
 * Splits one JSON array into its elements, by its commas, brackets and quotes alone. Throws BrokenSource where the array
 * cannot go on, because the elements after it cannot be told apart.
 */
export class JsonElements implements RowSplitter {
  readonly unit = 'row';
  readonly #element = new Pieces();
  /** Where the last chunk ended: in which part of the array, in how many brackets of an element, and in a text. */
  #part: 'before' | 'inside' | 'behind' = 'before';
  #depth = 0;
  #isInText = false;
  #isEscaped = false;

  *push(chunk: Buffer): Generator<RowText> {
    let from = this.#part === 'before' ? this.#begin(chunk) : 0;
    while (this.#part === 'inside') {
      const end = this.#endOfElement(chunk, from);
      this.#element.add(chunk.subarray(from, end));
      if (this.#element.length > LONGEST_ROW)
        throw new BrokenSource(`row ${this.#element.count + 1} is longer than 16 MB`);
      if (end === chunk.length) return;
      from = end + 1;
      if (chunk[end] === END_BRACE) this.#fail('expected a comma or ], got "}"');
      if (chunk[end] === END_BRACKET) this.#part = 'behind';
      const element = this.#element.take();
      const isNone = this.#part === 'behind' && element.at === 1 && isBlankText(element.bytes);
      if (!isNone) yield element;
    }
    if (this.#part === 'behind' && !isBlankText(chunk.subarray(from)))
      this.#fail('expected nothing behind the array');
  }

  end(): readonly RowText[] {
    if (this.#part === 'behind') return [];
    throw new BrokenSource(`the JSON array is cut off after row ${this.#element.count}`);
  }

  /** Finds the bracket that begins the array, before which are only blanks. Returns the index behind it. */
  #begin(chunk: Buffer): number {
    const at = chunk.indexOf(BRACKET);
    if (at >= 0) this.#part = 'inside';
    return at + 1;
  }

  /** The index of the comma or bracket that ends the element. The length of the chunk when it does not end there. */
  #endOfElement(chunk: Buffer, from: number): number {
    let [depth, isInText, isEscaped] = [this.#depth, this.#isInText, this.#isEscaped];
    let at = from;
    for (; at < chunk.length; at++) {
      const byte = chunk[at];
      if (isEscaped) isEscaped = false;
      else if (byte === QUOTE) isInText = !isInText;
      else if (isInText) isEscaped = byte === BACKSLASH;
      else if (byte === BRACE || byte === BRACKET) depth++;
      else if (byte === COMMA && depth === 0) break;
      else if ((byte === END_BRACE || byte === END_BRACKET) && --depth < 0) break;
    }
    this.#depth = Math.max(depth, 0);
    [this.#isInText, this.#isEscaped] = [isInText, isEscaped];
    return at;
  }

  #fail(reason: string): never {
    throw new BrokenSource(`the JSON is invalid in or after row ${this.#element.count + 1}: ${reason}`);
  }
}

function isBlankText(bytes: Buffer | null): boolean {
  return bytes?.every(isBlank) ?? false;
}
