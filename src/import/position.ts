const LF = 0x0a;
const CR = 0x0d;

/** The lines a row begins and ends on, from 1, and its bytes. */
export interface Place {
  readonly line: number;
  readonly lastLine: number;
  readonly bytes: Buffer;
}

/**
 * Where a reader is in its source: keeps the bytes that were given to a parser until the row they belong to is known,
 * so that a row has its line and its raw bytes. csv-parse's own `lines` counts a CRLF inside quotes twice.
 */
export class Position {
  #chunks: Buffer[] = [];
  #start = 0;
  #end = 0;
  #line = 1;

  /** Bytes given so far that belong to no row yet. */
  get pending(): number {
    return this.#end - this.#start;
  }

  /** The line on which the next row begins, blank lines before it not skipped. */
  get line(): number {
    return this.#line;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#end += chunk.length;
  }

  /** Takes the bytes of the next row, up to `end` (counted from the source's start, its line end included). */
  take(end: number): Place {
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

  /** Takes all that is left. */
  takeAll(): Place {
    return this.take(this.#end);
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

/** Line ends as an editor counts them: LF, CRLF and a CR alone are one each. */
function lineEnds(bytes: Buffer): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === LF || (bytes[at] === CR && bytes[at + 1] !== LF)) count++;
  }
  return count;
}
