import { isUtf8 } from 'node:buffer';
import { Assembler } from 'stream-json/assembler.js';
import { jsonParser, type Token, type TokenSource } from 'stream-json/parser.js';
import { quoted } from '../terminal/text.ts';
import { jsonNumber } from './numbers.ts';
import { BadRow, BrokenSource, LONGEST_ROW, sourceRow, type SourceRow } from './row.ts';

const OPTIONS = { packValues: true, streamValues: false };
/**
 * The maximum number of values on the assembler's stack, two per level. It is far deeper than items may be,
 * and far too small to fill the memory.
 */
const MAX_STACK = 2_000;
const BYTE_ORDER_MARK = '\ufeff';

/**
 * Reads one JSON array of objects, one element at a time. `at` is the number of the element. A syntax error
 * in the JSON ends the run (BrokenSource), because the elements after it cannot be told apart. The elements
 * before it are imported. `itemOf` makes the item of an element's value, or throws BadRow.
 */
export async function* readJsonArray(
  source: AsyncIterable<Buffer>,
  itemOf: (row: unknown) => Uint8Array,
): AsyncGenerator<SourceRow> {
  const array = new ArrayElements();
  const decoder = new Utf8Decoder();
  let bytes = 0;
  let isDamaged = false;
  for await (const chunk of source) {
    bytes += chunk.length;
    const { text, isValid } = decoder.push(chunk);
    isDamaged ||= !isValid;
    for (const element of array.push(text)) {
      const damaged = isDamaged;
      yield sourceRow(array.count, () => itemOf(checked(element, damaged)));
      isDamaged = !isValid;
      bytes = 0;
    }
    if (bytes > LONGEST_ROW) throw new BrokenSource(`row ${array.count + 1} is longer than 16 MB`);
  }
  if (!array.hasEnded) throw new BrokenSource(`the JSON array is cut off after row ${array.count}`);
}

/** The value of an element. Throws BadRow when it was damaged, or would lose one of two values of a name. */
function checked({ value, duplicate }: Element, isDamaged: boolean): unknown {
  if (isDamaged && JSON.stringify(value).includes('\ufffd')) throw new BadRow('the row is not valid UTF-8');
  if (duplicate !== null) throw duplicateName(duplicate);
  return value;
}

/**
 * Parses a JSON object whose numbers keep all their digits (see jsonNumber). It is several times slower than
 * JSON.parse, which rounds them. The text must be valid JSON. Throws BadRow when an object gives a name
 * twice.
 */
export function parseExact(text: string): unknown {
  const assembler = new ExactAssembler();
  for (const token of tokens(jsonParser(OPTIONS), text)) assembler.consume(token);
  const duplicate = assembler.takeDuplicate();
  if (duplicate !== null) throw duplicateName(duplicate);
  return assembler.current;
}

/** The error for a row that would lose one of two values with this name. */
function duplicateName(name: string): BadRow {
  return new BadRow(`the name ${quoted(name)} appears twice in one object`);
}

/**
 * Builds values from tokens as JSON.parse does, but numbers keep all their digits, and duplicate names are
 * detected.
 */
class ExactAssembler extends Assembler {
  #duplicate: string | null = null;

  override keyValue(name: string): void {
    if (this.current !== null && Object.hasOwn(this.current as object, name)) this.#duplicate ??= name;
    super.keyValue(name);
  }

  /** The first name that an object has given twice since the last call. null when there is none. */
  takeDuplicate(): string | null {
    const duplicate = this.#duplicate;
    this.#duplicate = null;
    return duplicate;
  }

  override numberValue(text: string): void {
    // The library's stringValue stores any value it is given as the next value.
    const put = this.stringValue.bind(this) as (value: unknown) => void;
    put(jsonNumber(text));
  }
}

/** An element of an array, and the first name that one of its objects gives twice, or null. */
interface Element {
  readonly value: unknown;
  readonly duplicate: string | null;
}

/**
 * The elements of one JSON array that comes in pieces of text. The first piece begins with the array's
 * bracket.
 */
class ArrayElements {
  readonly #parser = jsonParser(OPTIONS);
  readonly #assembler = new ExactAssembler();
  #hasBegun = false;
  /** The number of elements so far. */
  count = 0;

  /** Whether the array's closing bracket was read. */
  get hasEnded(): boolean {
    return this.#hasBegun && this.#assembler.done;
  }

  /** Yields the elements that end in this piece. Throws BrokenSource where the text cannot be JSON. */
  *push(text: string): Generator<Element> {
    try {
      // The parser returns nothing for a piece with a syntax error. A piece that ends at `}` holds the end of
      // at most one object of the array.
      for (let from = 0; from < text.length;) {
        const brace = text.indexOf('}', from);
        const to = brace < 0 ? text.length : brace + 1;
        yield* this.#pushPiece(text.slice(from, to));
        from = to;
      }
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      throw new BrokenSource(`the JSON is invalid in or after row ${this.count + 1}: ${error.message}`);
    }
  }

  *#pushPiece(piece: string): Generator<Element> {
    const assembler = this.#assembler;
    for (const token of tokens(this.#parser, piece)) {
      this.#hasBegun = true;
      assembler.consume(token);
      if (assembler.stack.length > MAX_STACK) throw new Error('the value is nested too deeply');
      const elements = assembler.depth === 1 ? assembler.current : null;
      if (Array.isArray(elements) && elements.length > 0) {
        this.count++;
        yield { value: elements.pop() as unknown, duplicate: assembler.takeDuplicate() };
      }
    }
  }
}

function tokens(parser: TokenSource, text: string): readonly Token[] {
  const read = parser(text);
  return typeof read === 'symbol' ? [] : read.values;
}

/** Decodes chunks of UTF-8 that may end inside a character. A byte order mark at the start is removed. */
class Utf8Decoder {
  #rest: Buffer = Buffer.alloc(0);
  #hasBegun = false;

  /**
   * Returns the complete characters so far. `isValid` is false when some bytes are not UTF-8. Each of those
   * becomes U+FFFD.
   */
  push(chunk: Buffer): { readonly text: string; readonly isValid: boolean } {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    const end = bytes.length - incompleteBytes(bytes);
    this.#rest = Buffer.from(bytes.subarray(end));
    const whole = bytes.subarray(0, end);
    const text = whole.toString('utf8');
    const hasMark = !this.#hasBegun && text.startsWith(BYTE_ORDER_MARK);
    this.#hasBegun ||= end > 0;
    return { text: hasMark ? text.slice(1) : text, isValid: isUtf8(whole) };
  }
}

/** The number of bytes at the end that begin an incomplete character: 0 to 3. */
function incompleteBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}
