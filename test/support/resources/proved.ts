import assert from 'node:assert/strict';
import { crc32 } from '../../../src/pipeline/crc32.ts';

interface Tally {
  readonly cursor: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: string;
}

/** What a client has of a stream with control lines, whole or cut. */
export interface Proved {
  /** The lines of all rows. */
  readonly rows: readonly Buffer[];
  /** The last checkpoint or end. Null: none came. */
  readonly tally: Tally | null;
  readonly ended: boolean;
  readonly error: { readonly code: string; readonly requestId: string } | null;
}

/** Reads a stream as a client does, and checks each proof. */
export function provedIn(bytes: Buffer): Proved {
  const rows: Buffer[] = [];
  let last: Pick<Proved, 'tally' | 'ended'> = { tally: null, ended: false };
  let error: Proved['error'] = null;
  let size = 0;
  let crc = 0;
  for (let at = 0, next = bytes.indexOf(10); next >= 0; at = next + 1, next = bytes.indexOf(10, at)) {
    const line = bytes.subarray(at, next + 1);
    if (line.toString('latin1', 0, 6) === '{"id":') {
      rows.push(line);
      size += line.length;
      crc = crc32(line, crc);
      continue;
    }
    const control = JSON.parse(line.toString()) as Partial<Record<'checkpoint' | 'end', Tally>> & {
      readonly error?: Proved['error'];
    };
    error = control.error ?? error;
    const tally = control.checkpoint ?? control.end;
    if (!tally) continue;
    assert.deepEqual(tally, { ...tally, rows: rows.length, bytes: size, crc32: hexOf(crc) });
    last = { tally, ended: control.end !== undefined };
  }
  return { rows, ...last, error };
}

/** The CRC-32 of bytes as control lines show it. */
export function hexCrc(bytes: Uint8Array): string {
  return hexOf(crc32(bytes));
}

function hexOf(crc: number): string {
  return crc.toString(16).padStart(8, '0');
}
