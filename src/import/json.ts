import { Assembler } from 'stream-json/assembler.js';
import { jsonParser, type Token, type TokenSource } from 'stream-json/parser.js';
import { quoted } from '../terminal/text.ts';
import { jsonNumber } from './number.ts';
import { BadRow } from './row.ts';

const OPTIONS = { packValues: true, streamValues: false };
/**
 * The maximum number of values on the assembler's stack, two per level. It is far deeper than items may be,
 * and far too small to fill the memory.
 */
const MAX_STACK = 2_000;

/**
 * Builds values from tokens as JSON.parse does, but numbers keep all their digits, and duplicate names are
 * detected.
 */
class ExactAssembler extends Assembler {
  #twice: string | null = null;

  override keyValue(name: string): void {
    if (this.current !== null && Object.hasOwn(this.current as object, name)) this.#twice ??= name;
    super.keyValue(name);
  }

  /** The first name that an object has given twice since the last call. null when there is none. */
  takeTwice(): string | null {
    const twice = this.#twice;
    this.#twice = null;
    return twice;
  }

  override numberValue(text: string): void {
    // The library's stringValue stores any value it is given as the next value.
    const put = this.stringValue.bind(this) as (value: unknown) => void;
    put(jsonNumber(text));
  }
}

/**
 * Parses a JSON object whose numbers keep all their digits (see jsonNumber). It is several times slower than
 * JSON.parse, which rounds them. The text must be valid JSON. Throws BadRow when an object gives a name
 * twice.
 */
export function parseExact(text: string): unknown {
  const assembler = new ExactAssembler();
  for (const token of tokens(jsonParser(OPTIONS), text)) assembler.consume(token);
  const twice = assembler.takeTwice();
  if (twice !== null) throw givenTwice(twice);
  return assembler.current;
}

/** The error for a row that would lose one of two values with this name. */
export function givenTwice(name: string): BadRow {
  return new BadRow(`it gives the name ${quoted(name)} twice in one object`);
}

/** An element of an array, and the name that it gives twice, or null. */
export interface Element {
  readonly value: unknown;
  readonly twice: string | null;
}

/**
 * The elements of one JSON array that comes in pieces of text. The first piece begins with the array's
 * bracket.
 */
export class ArrayElements {
  readonly #parser = jsonParser(OPTIONS);
  readonly #assembler = new ExactAssembler();
  #begun = false;

  /** Whether the array's closing bracket was read. */
  get ended(): boolean {
    return this.#begun && this.#assembler.done;
  }

  /** Yields the elements that end in this piece. Throws where the text cannot be JSON. */
  *push(text: string): Generator<Element> {
    // The parser returns nothing for a piece with a syntax error. A piece that ends at `}` holds the end of
    // at most one element.
    for (let from = 0; from < text.length;) {
      const brace = text.indexOf('}', from);
      const to = brace < 0 ? text.length : brace + 1;
      yield* this.#pushPiece(text.slice(from, to));
      from = to;
    }
  }

  *#pushPiece(piece: string): Generator<Element> {
    const assembler = this.#assembler;
    for (const token of tokens(this.#parser, piece)) {
      this.#begun = true;
      assembler.consume(token);
      if (assembler.stack.length > MAX_STACK) throw new Error('it is nested too deeply');
      const elements = assembler.depth === 1 ? assembler.current : null;
      if (Array.isArray(elements) && elements.length > 0) {
        yield { value: elements.pop() as unknown, twice: assembler.takeTwice() };
      }
    }
  }
}

function tokens(parser: TokenSource, text: string): readonly Token[] {
  const read = parser(text);
  return typeof read === 'symbol' ? [] : read.values;
}
