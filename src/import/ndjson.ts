import { isUtf8 } from 'node:buffer';
import { parseExact } from './json.ts';
import { keepsDigits } from './numbers.ts';
import { BadRow, LONGEST_ROW, sourceRow, type SourceRow } from './row.ts';
import { MAX_DEPTH } from './values.ts';

const LF = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const BLANK = /^[ \t\r]*$/;
/** A name that is a whole number, which JavaScript moves to the front of an object. */
const NUMBER_NAME = /"(?:\d|\\u003\d)+"\s*:/;
/**
 * A number whose digits a double may not keep. A similar piece of text inside a string may match too, which
 * is harmless.
 */
const LONG_NUMBER = /[:,[\s](-?(?:\d[\d.]{15,}(?:[eE][+-]?\d+)?|\d[\d.]*[eE]-\d{3,}))(?=\s*[,}\]])/g;

/** Makes the items of lines. */
export interface ItemOfLine {
  /** The item of a line's value. Throws BadRow. */
  readonly general: (row: unknown) => Uint8Array;
  /** The same item from the bytes of the line, several times faster. null: the general way must read the line. */
  readonly direct: ((line: Uint8Array) => Uint8Array | null) | null;
}

/**
 * Reads newline-delimited JSON, one object per line. Blank lines are ignored. `at` is the line number.
 */
export async function* readNdjson(
  source: AsyncIterable<Buffer>,
  itemOf: ItemOfLine,
): AsyncGenerator<SourceRow> {
  for await (const lines of linesOf(source)) {
    for (const line of lines) {
      const row = rowOf(line, itemOf);
      if (row) yield row;
    }
  }
}

/** null for a blank line. */
function rowOf({ at, bytes }: Line, { general, direct }: ItemOfLine): SourceRow | null {
  if (!bytes) return { at, problem: 'the line is longer than 16 MB' };
  const item = direct?.(bytes);
  if (item) return { at, item };
  const text = bytes.toString('utf8');
  if (BLANK.test(text)) return null;
  return sourceRow(at, () => {
    if (text.includes('\ufffd') && !isUtf8(bytes)) throw new BadRow('the row is not valid UTF-8');
    return general(parseLine(text, 'the line'));
  });
}

/**
 * Parses a JSON text; `what` names it in errors. Throws BadRow when it is not JSON, or when an object gives a name
 * twice. The exact parser is slow, so it is used only when JSON.parse would lose something.
 */
export function parseLine(text: string, what: string): unknown {
  const value = parseJson(text, what);
  const isWhole =
    keepsNumbers(text) && !NUMBER_NAME.test(text) && namesKept(value, MAX_DEPTH) === namesWritten(text);
  return isWhole ? value : parseExact(text);
}

function keepsNumbers(text: string): boolean {
  for (const [, number = ''] of text.matchAll(LONG_NUMBER)) {
    const value = Number(number);
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) return false;
    if (!keepsDigits(number, value)) return false;
  }
  return true;
}

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new BadRow(`${what} is not valid JSON: ${error.message}`);
    throw error;
  }
}

/** The number of names that the objects of a JSON text give. The text must be valid JSON. */
function namesWritten(text: string): number {
  let names = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at);
    else if (code === COLON) names++; // outside strings a colon only follows a name
  }
  return names;
}

/** The index of the closing quote of the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}

/**
 * The number of names in the objects of a parsed value, down to `levels` levels. It is smaller than the
 * number of names written when an object gives a name twice.
 */
function namesKept(value: unknown, levels: number): number {
  if (value === null || typeof value !== 'object' || levels === 0) return 0;
  const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce<number>((sum, one) => sum + namesKept(one, levels - 1), own);
}

/** Yields one array for each chunk: the lines that end in it. */
async function* linesOf(source: AsyncIterable<Buffer>): AsyncGenerator<readonly Line[]> {
  const splitter = new LineSplitter();
  for await (const chunk of source) yield splitter.push(chunk);
  yield splitter.end();
}

/** A line without its LF. `bytes` is null when the line is too long. */
interface Line {
  readonly at: number;
  readonly bytes: Buffer | null;
}

/**
 * Splits chunks of bytes into lines at LF. The last line needs no LF. It works on bytes, because a chunk may
 * end inside a character. For a line that is too long, only the length is kept, so that the lines after it
 * can still be read.
 */
class LineSplitter {
  #parts: Buffer[] = [];
  #length = 0;
  #at = 1;

  /**
   * The lines that end in this chunk. They are views of the chunk, or copies when a line began in an earlier
   * chunk.
   */
  push(chunk: Buffer): Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, from)) {
      this.#keep(chunk.subarray(from, end));
      lines.push(this.#take());
      from = end + 1;
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
    return lines;
  }

  /** The last line, when the source does not end with LF. */
  end(): Line[] {
    return this.#length > 0 ? [this.#take()] : [];
  }

  #keep(part: Buffer): void {
    this.#length += part.length;
    if (this.#length > LONGEST_ROW) this.#parts = [];
    else this.#parts.push(part);
  }

  #take(): Line {
    const [only] = this.#parts;
    const whole = this.#parts.length === 1 && only ? only : Buffer.concat(this.#parts);
    const line = { at: this.#at, bytes: this.#length > LONGEST_ROW ? null : whole };
    this.#parts = [];
    this.#length = 0;
    this.#at++;
    return line;
  }
}
