const LF = 0x0a;

/** A line without its LF. `bytes` is null when the line is too long. */
export interface Line {
  readonly at: number;
  readonly bytes: Buffer | null;
}

/**
 * Splits chunks of bytes into lines at LF. The last line needs no LF. It works on bytes, because a chunk may
 * end inside a character. For a line that is too long, only the length is kept, so that the lines behind it
 * can still be read.
 */
export class LineSplitter {
  readonly #longest: number;
  #parts: Buffer[] = [];
  #length = 0;
  #at = 1;

  /** `longest`: the maximum length of a line, in bytes. */
  constructor(longest: number) {
    this.#longest = longest;
  }

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
    if (this.#length > this.#longest) this.#parts = [];
    else this.#parts.push(part);
  }

  #take(): Line {
    const [only] = this.#parts;
    const whole = this.#parts.length === 1 && only ? only : Buffer.concat(this.#parts);
    const line = { at: this.#at, bytes: this.#length > this.#longest ? null : whole };
    this.#parts = [];
    this.#length = 0;
    this.#at++;
    return line;
  }
}
