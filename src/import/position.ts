const LF = 0x0a;
const CR = 0x0d;

/** The bytes of a row, and the lines on which it begins and ends, from 1. */
export interface RawRow {
  readonly line: number;
  readonly lastLine: number;
  readonly bytes: Buffer;
}

/**
 * Tracks the position of a reader in its source. It keeps the bytes given to a parser until their row is
 * known, so that each row has its line number and its raw bytes. The `lines` counter of csv-parse cannot be
 * used: it counts a CRLF inside quotes twice.
 */
export class Position {
  #chunks: Buffer[] = [];
  #start = 0;
  #end = 0;
  #line: number;

  /** `line`: the line on which the source begins. */
  constructor(line = 1) {
    this.#line = line;
  }

  /** The number of bytes so far that belong to no row yet. */
  get pending(): number {
    return this.#end - this.#start;
  }

  /** The line on which the next row begins, including blank lines before it. */
  get line(): number {
    return this.#line;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#end += chunk.length;
  }

  /**
   * Takes the bytes of the next row, up to the offset `end` from the start of the source. `end` includes the
   * row's line end.
   */
  take(end: number): RawRow {
    let bytes = this.#cut(end - this.#start);
    let at = 0;
    while (bytes[at] === LF || bytes[at] === CR) at++;
    this.#line += lineEnds(bytes.subarray(0, at));
    const line = this.#line;
    bytes = bytes.subarray(at);
    this.#line += lineEnds(bytes);
    const ended = bytes.at(-1) === LF || bytes.at(-1) === CR;
    return { line, lastLine: this.#line - (ended ? 1 : 0), bytes };
  }

  /** Takes all remaining bytes. */
  takeAll(): RawRow {
    return this.take(this.#end);
  }

  /** Takes all remaining bytes, without counting their lines. */
  takeRest(): Buffer {
    return this.#cut(this.pending);
  }

  #cut(length: number): Buffer {
    const [first] = this.#chunks;
    this.#start += length;
    if (first && length < first.length) {
      this.#chunks[0] = first.subarray(length);
      return first.subarray(0, length);
    }
    const all = Buffer.concat(this.#chunks);
    this.#chunks = length < all.length ? [all.subarray(length)] : [];
    return all.subarray(0, length);
  }
}

/** The number of line ends as an editor counts them: LF, CRLF and a lone CR are one each. */
function lineEnds(bytes: Buffer): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === LF || (bytes[at] === CR && bytes[at + 1] !== LF)) count++;
  }
  return count;
}
