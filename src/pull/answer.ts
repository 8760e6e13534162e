import { crc32Combine } from '../stream/crc32-combine.ts';
import { crc32 } from '../stream/crc32.ts';
import { clipped, failureOf, Interrupted, Refused } from './failure.ts';
import { LineReader } from './lines.ts';
import type { Place } from './place.ts';

/** Bytes of rows as they come, not proved yet. They are valid until the next step. */
export interface Unproved {
  readonly kind: 'rows';
  readonly bytes: Buffer;
}

/** A control line has proved everything since the last proof: `rows` rows of `bytes` bytes. */
export interface Proof {
  readonly kind: 'proof';
  readonly rows: number;
  readonly bytes: number;
  readonly place: Place;
  /** The beginning of the first row of this answer. Empty when the answer has none. */
  readonly firstRow: string;
}

interface Tally {
  readonly cursor: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: number;
}

type Control =
  | { readonly kind: 'checkpoint' | 'end'; readonly tally: Tally }
  | { readonly kind: 'error'; readonly status: number; readonly detail: string };

const MIB = 1024 * 1024;
/**
 * The maximum number of bytes without a proof. A server sends a checkpoint after 16 MiB of rows at the
 * latest, or after the one row that exceeds them.
 */
const MOST_UNPROVED = 128 * MIB;
/** The longest cursor. It goes into a URL, and the server reads only this much of one. */
const LONGEST_CURSOR = 12 * 1024;
/** The bytes of a row that distinguish it from all others: its id comes first and fits into a URL. */
export const LONGEST_BEGINNING = 8192;
const LF = 0x0a;

/**
 * Reads an answer that begins at `from`. Yields the rows as they come, and the proofs of them. Rows behind
 * the last proof are void, and come again with the next attempt. Returns when the bytes end, whole or not:
 * `place.ended` of the last proof tells which. Throws Interrupted when a control line is wrong or says that
 * the server gave up. Throws Refused when the server gave up for good, or sends what no sluice server sends.
 */
export async function* readAnswer(
  bytes: AsyncIterable<Buffer>,
  from: Place,
): AsyncGenerator<Unproved | Proof, void, undefined> {
  const lines = new LineReader();
  const first = new FirstRow();
  let proved = { rows: 0, bytes: 0 };
  let seen = { rows: 0, bytes: 0, crc32: 0 };
  for await (const chunk of bytes) {
    for (const part of lines.read(chunk)) {
      if (part.kind === 'rows') {
        first.add(part.bytes);
        seen = {
          rows: seen.rows + part.rows,
          bytes: seen.bytes + part.bytes.length,
          crc32: crc32(part.bytes, seen.crc32),
        };
        if (seen.bytes - proved.bytes > MOST_UNPROVED)
          throw new Refused(
            `the server sends no checkpoint for more than ${MOST_UNPROVED / MIB} MiB of rows`,
          );
        yield { kind: 'rows', bytes: part.bytes };
        continue;
      }
      const control = controlOf(part.text);
      if (control.kind === 'error')
        throw failureOf(control.status, `the server gave up: ${clipped(control.detail)}`);
      check(control.tally, seen);
      yield {
        kind: 'proof',
        rows: seen.rows - proved.rows,
        bytes: seen.bytes - proved.bytes,
        place: placeBehind(from, control.tally, control.kind === 'end'),
        firstRow: first.text,
      };
      if (control.kind === 'end') return;
      proved = seen;
    }
  }
}

/** Collects the beginning of the first row of an answer. */
class FirstRow {
  text = '';
  #isWhole = false;

  add(bytes: Buffer): void {
    if (this.#isWhole) return;
    const end = bytes.indexOf(LF);
    const most = LONGEST_BEGINNING - this.text.length;
    this.text += bytes.toString('latin1', 0, Math.min(end === -1 ? bytes.length : end, most));
    this.#isWhole = end !== -1 || this.text.length === LONGEST_BEGINNING;
  }
}

function placeBehind(from: Place, tally: Tally, ended: boolean): Place {
  return {
    cursor: tally.cursor ?? from.cursor,
    rows: from.rows + tally.rows,
    bytes: from.bytes + tally.bytes,
    crc32: crc32Combine(from.crc32, tally.crc32, tally.bytes),
    ended,
  };
}

function check(tally: Tally, seen: Omit<Tally, 'cursor'>): void {
  const wrong = (['rows', 'bytes', 'crc32'] as const).find((name) => tally[name] !== seen[name]);
  if (wrong === undefined) return;
  throw new Interrupted(
    `what came is not what the server sent: ${wrong} are ${seen[wrong]}, it says ${tally[wrong]}`,
  );
}

function controlOf(text: string): Control {
  const control = asControl(parse(text));
  if (control) return control;
  throw new Interrupted(`this line is neither a row nor a control line: ${text.slice(0, 60)}`);
}

function asControl(value: unknown): Control | null {
  if (typeof value !== 'object' || value === null) return null;
  if ('checkpoint' in value) return tallied('checkpoint', value.checkpoint);
  if ('end' in value) return tallied('end', value.end);
  if (!('error' in value) || typeof value.error !== 'object' || value.error === null) return null;
  const { status, detail } = value.error as { status?: unknown; detail?: unknown };
  if (!Number.isSafeInteger(status) || typeof detail !== 'string') return null;
  return { kind: 'error', status: Number(status), detail };
}

function tallied(kind: 'checkpoint' | 'end', value: unknown): Control | null {
  const {
    cursor = withoutCursor(kind),
    rows,
    bytes,
    crc32: crc,
  } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (!isCount(rows) || !isCount(bytes)) return null;
  if (typeof crc !== 'string' || !/^[0-9a-f]{8}$/.test(crc)) return null;
  if (cursor !== null && (typeof cursor !== 'string' || cursor.length > LONGEST_CURSOR)) return null;
  if (cursor === null && kind === 'checkpoint' && rows > 0) return null; // otherwise these rows would come again
  return { kind, tally: { cursor, rows, bytes, crc32: parseInt(crc, 16) } };
}

/** An end may have no cursor, when the key of its row is too long for one; nothing is to come behind it. */
function withoutCursor(kind: 'checkpoint' | 'end'): null | undefined {
  return kind === 'end' ? null : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
