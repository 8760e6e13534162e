import { crc32Combine } from '../pipeline/crc32-combine.ts';
import { crc32 } from '../pipeline/crc32.ts';
import { clipped } from '../terminal/text.ts';
import { LineReader, type RowBytes, type Tally } from './lines.ts';
import { failureOf, Mismatch, Refusal } from './retry.ts';

/** How far a pull has come: all rows up to here are proved. */
export interface ProvedPlace {
  /** Continues after the last proved row. null at the beginning. */
  readonly cursor: string | null;
  readonly rows: number;
  /** The bytes of these rows as NDJSON lines, including each LF. */
  readonly bytes: number;
  /** CRC-32 of these bytes. */
  readonly crc32: number;
  /** Whether these are all rows of the set. */
  readonly ended: boolean;
}

export const BEGINNING: ProvedPlace = { cursor: null, rows: 0, bytes: 0, crc32: 0, ended: false };

/** The combined proof of consecutive parts. It has no cursor. */
export function sumOf(places: readonly ProvedPlace[]): ProvedPlace {
  return places.reduce((sum, { rows, bytes, crc32, ended }) => ({
    cursor: null,
    rows: sum.rows + rows,
    bytes: sum.bytes + bytes,
    crc32: crc32Combine(sum.crc32, crc32, bytes),
    ended: sum.ended && ended,
  }));
}

/** A control line has proved everything since the last proof: `rows` rows of `bytes` bytes. */
export interface Proof {
  readonly kind: 'proof';
  readonly rows: number;
  readonly bytes: number;
  readonly place: ProvedPlace;
  /** The beginning of the first row of this answer. Empty when the answer has none. */
  readonly firstRow: string;
  /** See Tally. */
  readonly upToDate: boolean;
  readonly more: boolean;
}

const MIB = 1024 * 1024;
/** A server sends a checkpoint after 16 MiB of rows at the latest, or after the one row that exceeds them. */
const MOST_UNPROVED = 128 * MIB;
/** The bytes of a row that distinguish it from all others: its id comes first and fits into a URL. */
export const LONGEST_BEGINNING = 8192;
const LF = 0x0a;

/**
 * Reads an answer that begins at `from`. Yields the rows as they come, whose bytes are valid until the next step, and the
 * proofs of them. Returns when the bytes end, whole or not: `place.ended` of the last proof says which. Throws Interruption
 * when a control line is wrong or says that the server gave up, and Refusal when it gave up for good, or sends what no
 * sluice server sends.
 */
export async function* readAnswer(
  content: AsyncIterable<Uint8Array>,
  from: ProvedPlace,
  lines = new LineReader(),
): AsyncGenerator<RowBytes | Proof, void, undefined> {
  let first = '';
  let proved = { rows: 0, bytes: 0 };
  let seen = { rows: 0, bytes: 0, crc32: 0 };
  for await (const chunk of content) {
    for (const line of lines.read(chunk)) {
      if (line.kind === 'rows') {
        if (seen.rows === 0) first += beginningOf(line.bytes, LONGEST_BEGINNING - first.length);
        seen = {
          rows: seen.rows + line.rows,
          bytes: seen.bytes + line.bytes.length,
          crc32: crc32(line.bytes, seen.crc32),
        };
        if (seen.bytes - proved.bytes > MOST_UNPROVED)
          throw new Refusal(
            `the server sent more than ${MOST_UNPROVED / MIB} MiB of rows without a checkpoint`,
          );
        yield line;
        continue;
      }
      if (line.kind === 'error') throw failureOf(line.status, `the server gave up: ${clipped(line.detail)}`);
      checkTally(line.tally, seen);
      const isEnd = line.kind === 'end';
      const ended = isEnd && !line.tally.more;
      yield {
        kind: 'proof',
        rows: seen.rows - proved.rows,
        bytes: seen.bytes - proved.bytes,
        place: placeAfter(from, line.tally, ended),
        firstRow: first,
        upToDate: line.tally.upToDate,
        more: isEnd && !ended,
      };
      if (isEnd) return;
      proved = seen;
    }
  }
}

/** The bytes of a row up to its end, at most this number, as Latin-1. */
function beginningOf(bytes: Uint8Array, most: number): string {
  const end = bytes.indexOf(LF);
  return String.fromCharCode(...bytes.subarray(0, Math.min(end === -1 ? bytes.length : end, most)));
}

function checkTally(stated: Tally, seen: Pick<Tally, 'rows' | 'bytes' | 'crc32'>): void {
  const wrong = (['rows', 'bytes', 'crc32'] as const).find((name) => stated[name] !== seen[name]);
  if (wrong === undefined) return;
  throw new Mismatch(
    `the received rows do not match their control line: ${wrong} is ${seen[wrong]}, not ${stated[wrong]}`,
  );
}

function placeAfter(from: ProvedPlace, tally: Tally, ended: boolean): ProvedPlace {
  return {
    cursor: tally.cursor ?? from.cursor,
    rows: from.rows + tally.rows,
    bytes: from.bytes + tally.bytes,
    crc32: crc32Combine(from.crc32, tally.crc32, tally.bytes),
    ended,
  };
}
