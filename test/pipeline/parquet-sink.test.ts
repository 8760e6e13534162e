import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { ParquetSink } from '../../src/pipeline/parquet-sink.ts';
import { batchMessage, schemaMessage } from '../../src/rows/arrow/messages.ts';

const ROWS = 16;
const ROW_BYTES = 64 * 1024;
/** A row group of a file may have megabytes, and whoever answers requests takes each message at once. */
const MOST_BYTES = 256 * 1024;

test('a file of Parquet comes in pieces that take little time each', async () => {
  // Random bytes do not become fewer.
  const values = randomBytes(ROWS * ROW_BYTES);
  const offsets = new Uint8Array(Int32Array.from({ length: ROWS + 2 }, (_, row) => row * ROW_BYTES).buffer);
  const buffers = [
    { at: 0, length: 0 },
    { at: 0, length: 4 * (ROWS + 1) },
    { at: offsets.length, length: values.length },
  ];
  const parts: Uint8Array[] = [];
  const sink = new ParquetSink(
    schemaMessage([{ name: 'bytes', kind: 'binary' }], {}),
    {
      chunkBytes: 1,
      signal: new AbortController().signal,
      write: (bytes) => void parts.push(bytes),
      flush: () => undefined,
      end: () => undefined,
      fail: () => undefined,
    },
    [],
  );
  try {
    sink.write(batchMessage(ROWS, [{ nulls: 0, buffers }], offsets.length + values.length, {}));
    sink.write(offsets);
    sink.write(values);
    await sink.end();
  } finally {
    await sink.close();
  }
  const file = Buffer.concat(parts);
  assert.equal(file.subarray(-4).toString(), 'PAR1');
  assert.ok(file.length > values.length, `${file.length} bytes`);
  const longest = Math.max(...parts.map(({ length }) => length));
  assert.ok(longest <= MOST_BYTES, `a piece has ${longest} bytes`);
});
