const LF = 0x0a;
/** The third byte of a row's line, which begins with {"id": or {"_id":. Control lines have another byte there. */
const ROW_LETTERS = [0x69, 0x5f];

/** Counts the rows of an NDJSON stream with checkpoints and keeps the last proof of its control lines. */
export class RowCounter {
  rows = 0;
  proved = 0;
  bytes = 0;
  /** The number of received rows, including those that were received twice. */
  seen = 0;
  cursor = null;
  ended = false;
  #provedBefore = 0;
  #line = { length: 0, isRow: true, text: '' };
  #decoder = new TextDecoder();

  /** Starts another answer, whose control lines count from here. */
  begin() {
    this.#provedBefore = this.proved;
    this.#line = { length: 0, isRow: true, text: '' };
    this.#decoder = new TextDecoder();
  }

  /** Drops the rows that no checkpoint has proved, because the next answer repeats them. */
  forgetUnproved() {
    this.rows = this.proved;
  }

  add(chunk) {
    this.bytes += chunk.length;
    for (let at = 0; at < chunk.length;) {
      const end = chunk.indexOf(LF, at);
      const next = end === -1 ? chunk.length : end + 1;
      this.#part(chunk.subarray(at, next), end !== -1);
      at = next;
    }
  }

  #part(bytes, endsLine) {
    const line = this.#line;
    if (line.length <= 2 && line.length + bytes.length > 2)
      line.isRow = ROW_LETTERS.includes(bytes[2 - line.length]);
    // Rows are only counted. A line's first bytes are kept until they show whether it is a row.
    if (line.length + bytes.length <= 2 || !line.isRow)
      line.text += this.#decoder.decode(bytes, { stream: true });
    line.length += bytes.length;
    if (!endsLine) return;
    if (line.isRow) {
      this.rows++;
      this.seen++;
    } else this.#control(JSON.parse(line.text));
    this.#line = { length: 0, isRow: true, text: '' };
  }

  #control({ checkpoint, end, error }) {
    if (error) throw new Error(error.detail);
    const tally = checkpoint ?? end;
    this.proved = this.#provedBefore + tally.rows;
    this.cursor = tally.cursor ?? this.cursor;
    this.ended = end !== undefined;
  }
}
