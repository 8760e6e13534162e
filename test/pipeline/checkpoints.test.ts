import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { bookmarkOf } from '../../src/store/bookmark.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import type { Plan } from '../../src/store/store.ts';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { crc32Combine } from '../../src/pipeline/crc32-combine.ts';
import { CheckpointEncoder } from '../../src/pipeline/checkpoints.ts';
import { int32, row } from '../support/rows/bson-writer.ts';
import { arrayBody, batchOf } from '../support/rows/transcode.ts';

interface Tally {
  cursor: string | null;
  rows: number;
  bytes: number;
  crc32: string;
}

const PLAN: Plan = { sort: 'price', direction: 1 };
const slots = new Slots();
const transcoder = createTranscoder(slots);
const rowOf = (n: number) => row(n, [['price', int32(n % 7)]]);

/** An encoder whose clock the test moves, and what it has written. */
function written() {
  const state = { clock: 0, text: '' };
  const encoder = new CheckpointEncoder(transcoder.encoder('lines'), {
    plan: PLAN,
    cursorOf: (bookmark) => Buffer.from(bookmark).toString('hex'),
    start: 'start',
    now: () => state.clock,
  });
  let next = 0;
  return {
    encoder,
    state,
    /** Encodes a batch of `count` rows. `after` is called after each chunk. */
    encode: (count: number, chunkBytes = 16_000, after: () => unknown = () => undefined): string => {
      const rows = Array.from({ length: count }, () => rowOf(next++));
      const last = rows.at(-1);
      const body = { ...batchOf(slots, arrayBody(rows), 5), rows: count };
      const batch = { ...body, last: last ? bookmarkOf(last, PLAN) : null };
      const before = state.text.length;
      for (const chunk of encoder.encode(batch, chunkBytes)) {
        state.text += Buffer.from(chunk).toString();
        after();
      }
      batch.release();
      return state.text.slice(before);
    },
  };
}

/** The encoder's output for batches of these sizes. The reader takes `step` milliseconds for each chunk. */
function checked(batches: readonly number[], step: number, chunkBytes = 16_000): string {
  const { encoder, state, encode } = written();
  for (const count of batches) encode(count, chunkBytes, () => (state.clock += step));
  encoder.close();
  return state.text + encoder.end();
}

/** Checks every control line against the rows before it. Returns the largest number of rows between two of them. */
function verify(text: string): { rows: number; widest: number; checkpoints: number } {
  let bytes = 0;
  let sum = 0;
  let rows = 0;
  let before = 0;
  let widest = 0;
  let checkpoints = 0;
  for (const line of text.split('\n').slice(0, -1)) {
    if (line.startsWith('{"id":')) {
      sum = crc32(`${line}\n`, sum);
      bytes += Buffer.byteLength(line) + 1;
      rows++;
      continue;
    }
    const { checkpoint, end } = JSON.parse(line) as { checkpoint?: Tally; end?: Tally };
    const cursor = rows === 0 ? 'start' : Buffer.from(bookmarkOf(rowOf(rows - 1), PLAN)).toString('hex');
    const hex = sum.toString(16).padStart(8, '0');
    assert.deepEqual(checkpoint ?? end, { cursor, rows, bytes, crc32: hex });
    widest = Math.max(widest, rows - before);
    before = rows;
    checkpoints++;
  }
  assert.match(text, /\n?{"end":[^\n]*\n$/);
  return { rows, widest, checkpoints };
}

test('each checkpoint covers exactly the rows before it, and at most 10,000 rows pass without one', () => {
  const { rows, widest, checkpoints } = verify(checked([250, 3_700, 1, 16_384, 3], 0));
  assert.equal(rows, 250 + 3_700 + 1 + 16_384 + 3);
  assert.equal(widest, 10_000);
  assert.equal(checkpoints, 4);
});

test('checkpoints are correct for batches of any size, chunks of any size and readers of any speed', () => {
  const property = fc.property(
    fc.array(fc.nat(300), { maxLength: 6 }),
    fc.constantFrom(0, 1, 40, 900, 6000),
    fc.constantFrom(256, 999, 16_000),
    (batches, step, chunkBytes) => {
      const { rows } = verify(checked(batches, step, chunkBytes));
      assert.equal(
        rows,
        batches.reduce((sum, count) => sum + count, 0),
      );
    },
  );
  fc.assert(property, { numRuns: 40 });
});

test('a slow reader gets a checkpoint within 5 seconds, even in the middle of a batch', () => {
  // 500 ms for 1,000 bytes, which are about 45 rows: 2 kB/s.
  const { checkpoints } = verify(checked([250, 8000], 500, 1000));
  const seconds = Buffer.byteLength(checked([250, 8000], 0)) / 2000;
  assert.ok(checkpoints > seconds / 5, `${checkpoints} in ${seconds} s`);
});

test('an empty stream ends at its start cursor', () => {
  assert.equal(checked([0], 0), '{"end":{"cursor":"start","rows":0,"bytes":0,"crc32":"00000000"}}\n');
});

test('the CRCs of pieces combine to the CRC of the whole, as zlib computes it', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(pieces, (parts) => {
      const combined = parts.reduce((sum, part) => crc32Combine(sum, crc32(part), part.length), 0);
      assert.equal(combined, crc32(Buffer.concat(parts)));
    }),
  );
  // Lengths beyond 32 bits, compared with zeros fed block by block: crc(A, then n zero bytes).
  const zeros = (crc: number, bytes: number): number => crc32Combine(crc, zeroCrc(bytes), bytes);
  assert.equal(zeros(0x12345678, 3 * 2 ** 33), zeros(zeros(zeros(0x12345678, 2 ** 33), 2 ** 33), 2 ** 33));
  assert.throws(() => crc32Combine(0, 0, -1), RangeError);
  assert.throws(() => crc32Combine(0, 0, 0.5), RangeError);
});

/** The CRC-32 of a number of zero bytes (a power of two times a small number), by doubling. */
function zeroCrc(bytes: number): number {
  if (bytes <= 4096) return crc32(Buffer.alloc(bytes));
  const half = zeroCrc(bytes / 2);
  return crc32Combine(half, half, bytes / 2);
}

test('a checkpoint comes with a batch without rows when rows have come, or when it is wanted, and only once', () => {
  const { encoder, encode } = written();
  assert.equal(encode(0), '');
  encoder.want();
  assert.match(encode(0), /^{"checkpoint":{"cursor":"start","rows":0,[^\n]*\n$/);
  assert.equal(encode(0), '');
  assert.equal(encode(3).split('\n').length, 3 + 1);
  assert.deepEqual(encoder.sinceCheckpoint, { lines: 3, at: 0 });
  assert.match(encode(0), /^{"checkpoint":{[^\n]*"rows":3,[^\n]*\n$/);
  assert.deepEqual(encoder.sinceCheckpoint, { lines: 0, at: 0 });
  assert.equal(encode(0), '');
});

test('lines that are said count as bytes and lines, but not as rows; a checkpoint follows with the next empty batch', () => {
  const { encoder, state, encode } = written();
  encoder.say('{"deleted":"a"}\n');
  assert.equal(encode(0), '{"deleted":"a"}\n');
  assert.deepEqual(encoder.sinceCheckpoint, { lines: 1, at: 0 });
  state.clock = 7;
  const sum = crc32('{"deleted":"a"}\n').toString(16).padStart(8, '0');
  assert.equal(encode(0), `{"checkpoint":{"cursor":"start","rows":0,"bytes":16,"crc32":"${sum}"}}\n`);
  assert.deepEqual(encoder.sinceCheckpoint, { lines: 0, at: 7 });
});

test('an error begins on a line of its own, also when a row is cut', () => {
  const said = { type: 'x', title: 'x', detail: 'x', instance: '/items', requestId: 'x' };
  const problem = { ...said, status: 500, code: 'internal' };
  const { encoder, state, encode } = written();
  const inRows: string[] = [];
  encode(100, 999, () => {
    if (!state.text.endsWith('\n')) inRows.push(encoder.error(problem));
  });
  assert.match(inRows[0] ?? '', /^\n{"error":/);
  assert.match(encoder.error(problem), /^{"error":/);
});

test('rows behind a cut are neither written nor counted, and the cursor is that of the last one written', () => {
  const { encoder, state, encode } = written();
  let isCut = false;
  encode(500, 999, () => {
    if (isCut) return;
    isCut = true;
    encoder.cut();
  });
  const { rows } = verify(state.text + encoder.end());
  assert.ok(rows > 0 && rows < 250, `${rows} rows`);
  assert.equal(encoder.rows, rows);
});
