import { clipped } from '../terminal/text.ts';
import { jsonIn, Mismatch, Refusal } from './retry.ts';

const LF = 0x0a;
/** The beginning of a line that says that a row was removed, or no longer has the values of the filter. */
export const REMOVAL_BEGINNING = '{"removed":';
/** The beginnings of a row's line: the key comes first, as `_id` when the row has a field `id` of its own. */
export const ROW_BEGINNINGS = ['{"id":', '{"_id":'].map(bytesOf);
/** The same for a feed of changes, where the removal of a row is proved like a row, and lines may name their set. */
export const CHANGE_BEGINNINGS = [...ROW_BEGINNINGS, ...[REMOVAL_BEGINNING, '{"resource":'].map(bytesOf)];
const MIB = 1024 * 1024;

/** Bytes. A document has at most 16 MiB of BSON, and JSON is at most six times as long: \u0001 for one byte. */
const LONGEST_ROW = 100 * MIB;
/** Bytes. A control line holds the detail of a problem, or a cursor, which must fit into a URL. */
const LONGEST_CONTROL = 64 * 1024;
/** The longest cursor. It goes into a URL, and the server reads only this much of one. */
const LONGEST_CURSOR = 12 * 1024;
/** The length of a wrong line in a message. Characters. */
const LONGEST_LINE_SHOWN = 60;
const NOTHING = new Uint8Array();

/** What a control line states about all rows of its answer so far. */
export interface Tally {
  /** Continues after these rows. null when there is no row, or when the last key is too long for a cursor. */
  readonly cursor: string | null;
  /** Of a feed: rows and removals. */
  readonly rows: number;
  /** The bytes of these rows, including each LF. */
  readonly bytes: number;
  readonly crc32: number;
  /** Of a feed: whether the reader has everything that the set had when this line was written. */
  readonly upToDate: boolean;
  /** Of an end: whether the answer ended before the rows did. The rest follows the cursor. */
  readonly more: boolean;
}

type ControlLine =
  | { readonly kind: 'checkpoint' | 'end'; readonly tally: Tally }
  | { readonly kind: 'error'; readonly status: number; readonly detail: string };

/** Bytes of rows, the last of which may continue in the next part. */
export interface RowBytes {
  readonly kind: 'rows';
  readonly bytes: Uint8Array;
  /** The number of rows that end here. */
  readonly rows: number;
}

/**
 * Splits the bytes of an answer into rows and control lines, wherever its chunks end, and holds no more than a control
 * line. Throws Refusal when a line is too long, and Interruption when it is neither a row nor a control line.
 */
export class LineReader {
  /** The beginning of a line that may be a control line, or of a row that is still too short to be recognized. */
  #begun: Uint8Array = NOTHING;
  /** The bytes of the current row so far. 0 at the beginning of a line. */
  #rowBytes = 0;
  readonly #beginnings: readonly Uint8Array[];

  /** `beginnings`: those of lines that are rows. */
  constructor(beginnings: readonly Uint8Array[] = ROW_BEGINNINGS) {
    this.#beginnings = beginnings;
  }

  *read(chunk: Uint8Array): Generator<RowBytes | ControlLine, void, undefined> {
    let run = 0;
    let rows = 0; // the start of row bytes in this chunk, and the number of rows that end in it
    for (let at = 0; at < chunk.length;) {
      const lf = chunk.indexOf(LF, at);
      const isWhole = lf !== -1;
      const end = isWhole ? lf + 1 : chunk.length;
      if (this.#rowBytes === 0 && (this.#begun.length > 0 || !this.#isRow(chunk, at))) {
        if (at > run) yield { kind: 'rows', bytes: chunk.subarray(run, at), rows };
        const part = this.#begin(chunk.subarray(at, end), isWhole);
        if (part) yield part;
        run = end;
        rows = 0;
      } else {
        this.#growRow(end - at);
        if (isWhole) {
          this.#rowBytes = 0;
          rows = rows + 1;
        }
      }
      at = end;
    }
    if (run < chunk.length) yield { kind: 'rows', bytes: chunk.subarray(run), rows };
  }

  /** Adds bytes to a line. Returns null while its kind is unknown, or while a control line is incomplete. */
  #begin(bytes: Uint8Array, isWhole: boolean): RowBytes | ControlLine | null {
    const line = joined(this.#begun, bytes);
    this.#begun = NOTHING;
    if (this.#isRow(line, 0)) {
      this.#growRow(line.length);
      if (isWhole) this.#rowBytes = 0;
      return { kind: 'rows', bytes: line, rows: isWhole ? 1 : 0 };
    }
    if (line.length > LONGEST_CONTROL)
      throw new Refusal(
        `the server sent a line of more than ${LONGEST_CONTROL / 1024} KiB that is not a row`,
      );
    if (isWhole) return controlOf(new TextDecoder().decode(line.subarray(0, -1)));
    this.#begun = line;
    return null;
  }

  #isRow(bytes: Uint8Array, at: number): boolean {
    return this.#beginnings.some((begin) => startsWith(bytes, at, begin));
  }

  #growRow(bytes: number): void {
    this.#rowBytes += bytes;
    if (this.#rowBytes > LONGEST_ROW)
      throw new Refusal(`the server sent a row of more than ${LONGEST_ROW / MIB} MiB`);
  }
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function startsWith(bytes: Uint8Array, at: number, begin: Uint8Array): boolean {
  for (let i = 0; i < begin.length; i++) if (bytes[at + i] !== begin[i]) return false;
  return true;
}

function controlOf(line: string): ControlLine {
  const control = asControl(jsonIn(line));
  if (control) return control;
  throw new Mismatch(`a line is neither a row nor a control line: ${clipped(line, LONGEST_LINE_SHOWN)}`);
}

function asControl(value: unknown): ControlLine | null {
  if (typeof value !== 'object' || value === null) return null;
  if ('checkpoint' in value) return asTallied('checkpoint', value.checkpoint);
  if ('end' in value) return asTallied('end', value.end);
  if (!('error' in value) || typeof value.error !== 'object' || value.error === null) return null;
  const { status, detail } = value.error as { status?: unknown; detail?: unknown };
  if (!Number.isSafeInteger(status) || typeof detail !== 'string') return null;
  return { kind: 'error', status: Number(status), detail };
}

function asTallied(kind: 'checkpoint' | 'end', value: unknown): ControlLine | null {
  const {
    cursor = kind === 'end' ? null : undefined, // an end has no cursor when its last key is too long for one
    rows,
    removed = 0,
    bytes,
    crc32,
    upToDate = false,
    more = false,
  } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (!isCount(rows) || !isCount(removed) || !isCount(bytes)) return null;
  if (typeof crc32 !== 'string' || !/^[0-9a-f]{8}$/.test(crc32)) return null;
  if (cursor !== null && (typeof cursor !== 'string' || cursor.length > LONGEST_CURSOR)) return null;
  if (cursor === null && kind === 'checkpoint' && rows > 0) return null; // otherwise these rows would come again
  const sums = { rows: rows + removed, bytes, crc32: parseInt(crc32, 16) };
  return { kind, tally: { cursor, ...sums, upToDate: upToDate === true, more: more === true } };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
