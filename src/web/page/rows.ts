/** Counts and proves the rows of an NDJSON stream with checkpoints that comes in several answers. */
import { crc32Combine } from '../../pipeline/crc32-combine.ts';
import { crc32, crcText } from './crc32.ts';

const LF = 0x0a;
/** The third byte of a row's line, which begins with {"id": or {"_id":. Control lines have another byte there. */
const ROW_LETTERS = [0x69, 0x5f];
const NONE = new Uint8Array();

interface Tally {
  readonly cursor?: string;
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: string;
}

/** What one answer has brought since it began: its rows, their bytes, and their CRC-32. */
interface Piece {
  rows: number;
  bytes: number;
  crc: number;
}

export class RowCounter {
  rows = 0;
  proved = 0;
  /** All bytes that came, also of rows that came twice. */
  bytes = 0;
  /** All rows that came, also those that came twice. */
  seen = 0;
  cursor: string | null = null;
  ended = false;
  /** The number of proved rows that each answer brought. */
  pieces: number[] = [];
  /** The CRC-32 of all kept rows as this page computes it, and of the server's CRCs of the pieces, joined. */
  own = 0;
  joined = 0;
  /** The same at the last proof. */
  #proof = { own: 0, joined: 0, rows: 0 };
  #before = { joined: 0, rows: 0 };
  #piece: Piece = { rows: 0, bytes: 0, crc: 0 };
  #line = newLine();
  #decoder = new TextDecoder();

  /** Begins another answer, which goes on after the last proof. Rows that nothing has proved come again. */
  begin(): void {
    const { own, joined, rows } = this.#proof;
    this.rows = this.proved = rows;
    this.own = own;
    this.joined = joined;
    this.#before = { joined, rows };
    this.#piece = { rows: 0, bytes: 0, crc: 0 };
    this.pieces.push(0);
    this.#line = newLine();
    this.#decoder = new TextDecoder();
  }

  /** Takes the next bytes. Throws when a control line does not fit the rows, or reports a failure. */
  add(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    for (let at = 0; at < chunk.length;) {
      const end = chunk.indexOf(LF, at);
      const next = end === -1 ? chunk.length : end + 1;
      this.#part(chunk.subarray(at, next), end !== -1);
      at = next;
    }
  }

  /** Whether every kept row is proved, and the checksum of the joined pieces is that of the rows. */
  get matches(): boolean {
    return this.ended && this.own === this.joined && this.rows === this.proved;
  }

  #part(bytes: Uint8Array, endsLine: boolean): void {
    const line = this.#line;
    if (line.isRow === null && line.length + bytes.length > 2) {
      line.isRow = ROW_LETTERS.includes(bytes[2 - line.length] ?? 0);
      this.#take(line.head, line.isRow);
      line.head = NONE;
    }
    if (line.isRow === null) line.head = Uint8Array.from([...line.head, ...bytes]);
    else this.#take(bytes, line.isRow);
    line.length += bytes.length;
    if (!endsLine) return;
    if (line.isRow === true) {
      this.rows++;
      this.seen++;
      this.#piece.rows++;
    } else this.#control(JSON.parse(line.text) as Control);
    this.#line = newLine();
  }

  #take(bytes: Uint8Array, isRow: boolean): void {
    if (!isRow) {
      this.#line.text += this.#decoder.decode(bytes, { stream: true });
      return;
    }
    this.#piece.crc = crc32(bytes, this.#piece.crc);
    this.#piece.bytes += bytes.length;
    this.own = crc32(bytes, this.own);
  }

  #control({ checkpoint, end, error }: Control): void {
    if (error) throw new Error(error.detail);
    const tally = checkpoint ?? end;
    const { rows, bytes, crc } = this.#piece;
    if (tally?.rows !== rows || tally.bytes !== bytes || tally.crc32 !== crcText(crc))
      throw new Error('The rows do not match the checksum of the server.');
    this.joined = crc32Combine(this.#before.joined, Number.parseInt(tally.crc32, 16), bytes);
    this.proved = this.#before.rows + rows;
    this.pieces[this.pieces.length - 1] = rows;
    this.cursor = tally.cursor ?? this.cursor;
    this.#proof = { own: this.own, joined: this.joined, rows: this.proved };
    this.ended = end !== undefined;
  }
}

interface Control {
  readonly checkpoint?: Tally;
  readonly end?: Tally;
  readonly error?: { readonly detail: string };
}

/** A line as far as it has come. `head`: its first bytes, until they show whether it is a row. */
interface Line {
  length: number;
  isRow: boolean | null;
  head: Uint8Array;
  text: string;
}

function newLine(): Line {
  return { length: 0, isRow: null, head: NONE, text: '' };
}
