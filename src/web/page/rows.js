const LF = 0x0a;
/** The third byte of a row's line, which begins {"id": or {"_id": - control lines have another there. */
const ROW_LETTERS = [0x69, 0x5f];

/** Counts the rows of an NDJSON stream with checkpoints, and keeps what its control lines prove. */
export class RowCounter {
  rows = 0;
  proved = 0;
  bytes = 0;
  /** Rows that came, those that came twice included. */
  seen = 0;
  cursor = null;
  ended = false;
  #provedBefore = 0;
  #line = { length: 0, isRow: true, text: '' };
  #decoder = new TextDecoder();

  /** Another answer begins: its control lines count from here. */
  begin() {
    this.#provedBefore = this.proved;
    this.#line = { length: 0, isRow: true, text: '' };
    this.#decoder = new TextDecoder();
  }

  /** What no checkpoint has proved comes again. */
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
    // Rows are only counted; the few bytes before it is known what a line is are kept with it.
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
