import { Refused } from './failure.ts';

const LF = 0x0a;
/**
 * The beginnings of a row's line. No control line begins like this. The key comes first, as `_id` when the
 * row has a field `id` of its own.
 */
const ROWS = ['{"id":', '{"_id":'].map((begin) => Buffer.from(begin));
const MIB = 1024 * 1024;

/**
 * The longest row, in bytes. A document has at most 16 MiB of BSON, and JSON is at most six times as long: a
 * control character, one byte, becomes \u0001.
 */
export const LONGEST_ROW = 100 * MIB;
/**
 * The longest control line, in bytes. It holds the detail of a problem, or a cursor, which must fit into a
 * URL.
 */
const LONGEST_CONTROL = 64 * 1024;
const NOTHING = Buffer.alloc(0);

/** Bytes of rows, the last of which may continue in the next part, or one control line without its LF. */
export type Part =
  | { readonly kind: 'rows'; readonly bytes: Buffer; /** Rows that end here. */ readonly rows: number }
  | { readonly kind: 'control'; readonly text: string };

/**
 * Splits the bytes of an answer into rows and control lines, wherever its chunks end. Rows are passed on as
 * they come, so the reader never holds more than a control line. Throws Refused when a line is too long.
 */
export class LineReader {
  /**
   * The beginning of a line that may be a control line, or of a row that is still too short to be recognized.
   */
  #begun = NOTHING;
  /** The bytes of the current row so far. 0 at the beginning of a line. */
  #rowBytes = 0;

  *read(chunk: Buffer): Generator<Part, void, undefined> {
    let [run, rows] = [0, 0]; // the start of row bytes in this chunk, and the rows that end in it
    for (let at = 0; at < chunk.length;) {
      const behind = chunk.indexOf(LF, at) + 1; // 0: the line does not end here
      const end = behind === 0 ? chunk.length : behind;
      if (this.#rowBytes === 0 && (this.#begun.length > 0 || !isRow(chunk, at))) {
        if (at > run) yield { kind: 'rows', bytes: chunk.subarray(run, at), rows };
        const part = this.#begin(chunk.subarray(at, end), behind > 0);
        if (part) yield part;
        [run, rows] = [end, 0];
      } else {
        this.#growRow(end - at);
        if (behind > 0) [this.#rowBytes, rows] = [0, rows + 1];
      }
      at = end;
    }
    if (run < chunk.length) yield { kind: 'rows', bytes: chunk.subarray(run), rows };
  }

  /**
   * Adds bytes to a line of unknown kind. Returns null while the kind is unknown, or while a control line is
   * incomplete.
   */
  #begin(bytes: Buffer, isWhole: boolean): Part | null {
    const line = Buffer.concat([this.#begun, bytes]);
    this.#begun = NOTHING;
    if (isRow(line, 0)) {
      this.#growRow(line.length);
      if (isWhole) this.#rowBytes = 0;
      return { kind: 'rows', bytes: line, rows: isWhole ? 1 : 0 };
    }
    if (line.length > LONGEST_CONTROL)
      throw new Refused(`the server sends a line of more than ${LONGEST_CONTROL / 1024} KiB that is no row`);
    if (isWhole) return { kind: 'control', text: line.toString('utf8', 0, line.length - 1) };
    this.#begun = line;
    return null;
  }

  #growRow(bytes: number): void {
    this.#rowBytes += bytes;
    if (this.#rowBytes > LONGEST_ROW)
      throw new Refused(`the server sends a row of more than ${LONGEST_ROW / MIB} MiB`);
  }
}

function isRow(bytes: Buffer, at: number): boolean {
  return ROWS.some((begin) => startsWith(bytes, at, begin));
}

function startsWith(bytes: Buffer, at: number, begin: Buffer): boolean {
  for (let i = 0; i < begin.length; i++) if (bytes[at + i] !== begin[i]) return false;
  return true;
}
