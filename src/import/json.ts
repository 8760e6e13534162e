import { isUtf8 } from 'node:buffer';
import { jsonParser, type Token, type TokenSource } from 'stream-json/parser.js';
import { quoted } from '../terminal/text.ts';
import { jsonNumber } from './numbers.ts';
import { BadRow, BrokenSource, LONGEST_ROW, sourceRow, type SourceRow } from './row.ts';

const OPTIONS = { packValues: true, streamValues: false };
/** The maximum number of levels. It is far deeper than items may be, and far too small to fill the memory. */
const MOST_LEVELS = 1_000;

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
  if (isDamaged && isReplaced(value)) throw new BadRow('the row is not valid UTF-8');
  if (duplicate !== null) throw duplicateName(duplicate);
  return value;
}

/** Whether a text in a value has the character that stands for bytes that are not UTF-8. */
function isReplaced(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\ufffd');
  if (value instanceof Map) return [...value].some((member) => member.some(isReplaced));
  return Array.isArray(value) && value.some(isReplaced);
}

/**
 * Parses a JSON object or array. Its numbers keep all their digits (see jsonNumber), and its objects are Maps, which
 * keep the order of names such as \`2024\`. It is several times slower than JSON.parse. The text must be valid JSON.
 * Throws BadRow when an object gives a name twice.
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

/** An object or an array whose end has not come, and the name of the member that comes next. */
interface Open {
  readonly value: Map<string, unknown> | unknown[];
  name: string;
}

/** Builds values from tokens. Numbers keep all their digits, objects are Maps, and duplicate names are detected. */
class ExactAssembler {
  readonly #open: Open[] = [];
  #duplicate: string | null = null;
  /** The last object or array that was not inside another one. */
  current: unknown = null;

  /** How many objects and arrays are open. */
  get depth(): number {
    return this.#open.length;
  }

  /** The elements so far of the outermost array. null inside of its elements. */
  get elements(): unknown[] | null {
    const [outermost, inner] = this.#open;
    return outermost && !inner && Array.isArray(outermost.value) ? outermost.value : null;
  }

  /** The first name that an object has given twice since the last call. null when there is none. */
  takeDuplicate(): string | null {
    const duplicate = this.#duplicate;
    this.#duplicate = null;
    return duplicate;
  }

  consume(token: Token): void {
    const { name } = token;
    if (name === 'startObject') this.#begin(new Map());
    else if (name === 'startArray') this.#begin([]);
    else if (name === 'endObject' || name === 'endArray') this.#open.pop();
    else if (name === 'keyValue') this.#name(token.value);
    else if (name === 'numberValue') this.#put(jsonNumber(token.value));
    else if ('value' in token) this.#put(token.value); // the parser sends no parts of strings
  }

  #begin(value: Open['value']): void {
    if (this.#open.length === 0) this.current = value;
    else this.#put(value);
    this.#open.push({ value, name: '' });
  }

  #name(name: string): void {
    const last = this.#open.at(-1);
    if (!last || Array.isArray(last.value)) return;
    if (last.value.has(name)) this.#duplicate ??= name;
    last.name = name;
  }

  #put(value: unknown): void {
    const last = this.#open.at(-1);
    if (!last) this.current = value;
    else if (Array.isArray(last.value)) last.value.push(value);
    else last.value.set(last.name, value);
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
    return this.#hasBegun && this.#assembler.depth === 0;
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
      if (assembler.depth > MOST_LEVELS) throw new Error('the value is nested too deeply');
      const { elements } = assembler;
      if (elements && elements.length > 0) {
        this.count++;
        yield { value: elements.pop(), duplicate: assembler.takeDuplicate() };
      }
    }
  }
}

function tokens(parser: TokenSource, text: string): readonly Token[] {
  const read = parser(text);
  return typeof read === 'symbol' ? [] : read.values;
}

/** Decodes chunks of UTF-8 that may end inside a character. */
class Utf8Decoder {
  #rest: Buffer = Buffer.alloc(0);

  /**
   * Returns the complete characters so far. `isValid` is false when some bytes are not UTF-8. Each of those
   * becomes U+FFFD.
   */
  push(chunk: Buffer): { readonly text: string; readonly isValid: boolean } {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    const end = bytes.length - incompleteBytes(bytes);
    this.#rest = Buffer.from(bytes.subarray(end));
    const whole = bytes.subarray(0, end);
    return { text: whole.toString('utf8'), isValid: isUtf8(whole) };
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
