import { crc32Combine } from '../stream/crc32-combine.ts';
import { crc32 } from '../stream/crc32.ts';
import { failureOf, Interrupted } from './failure.ts';
import { LineReader } from './lines.ts';
import type { Place } from './place.ts';

/** Whole rows that a control line has proved, and the place behind them. */
export interface Piece {
  readonly chunks: readonly Buffer[];
  readonly rows: number;
  readonly bytes: number;
  readonly place: Place;
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

/**
 * The proved pieces of an answer that begins at `from`. Rows behind its last control line are dropped: they come again.
 * Returns when the bytes end, whole or not: that tells `place.ended` of the last piece. Interrupted when a control line is wrong or
 * says that the server gave up; Refused when it gave up for good.
 */
export async function* provedPieces(
  bytes: AsyncIterable<Buffer>,
  from: Place,
): AsyncGenerator<Piece, void, undefined> {
  const lines = new LineReader();
  let chunks: Buffer[] = [];
  let pending = { rows: 0, bytes: 0 };
  let seen = { rows: 0, bytes: 0, crc32: 0 };
  for await (const chunk of bytes) {
    for (const part of lines.read(chunk)) {
      if (part.kind === 'rows') {
        chunks.push(part.bytes);
        pending = { rows: pending.rows + part.rows, bytes: pending.bytes + part.bytes.length };
        seen = {
          rows: seen.rows + part.rows,
          bytes: seen.bytes + part.bytes.length,
          crc32: crc32(part.bytes, seen.crc32),
        };
        continue;
      }
      const control = controlOf(part.text);
      if (control.kind === 'error') throw failureOf(control.status, `the server gave up: ${control.detail}`);
      check(control.tally, seen);
      yield { chunks, ...pending, place: placeBehind(from, control.tally, control.kind === 'end') };
      if (control.kind === 'end') return;
      chunks = [];
      pending = { rows: 0, bytes: 0 };
    }
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
  return { kind: 'error', status: Number(status), detail: String(detail) };
}

function tallied(kind: 'checkpoint' | 'end', value: unknown): Control | null {
  const { cursor, rows, bytes, crc32: crc } = (value ?? {}) as Readonly<Record<string, unknown>>;
  const isSound =
    (cursor === null || typeof cursor === 'string') && typeof crc === 'string' && /^[0-9a-f]{8}$/.test(crc);
  if (!isSound || !Number.isSafeInteger(rows) || !Number.isSafeInteger(bytes)) return null;
  return { kind, tally: { cursor, rows: Number(rows), bytes: Number(bytes), crc32: parseInt(crc, 16) } };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
