import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readParquet } from 'parquet-wasm';
import { AppError } from '../../src/base/errors.ts';
import { ParquetSink } from '../../src/pipeline/parquet-sink.ts';
import { batchMessage, schemaMessage } from '../../src/rows/arrow/messages.ts';
import { sinkTo } from '../support/process/app.ts';
import { arrowMessages } from '../support/resources/arrow.ts';

const HEAD = schemaMessage([{ name: 'n', kind: 'integer' }], {});

/** The messages of a record batch of `rows` numbers from `first` on. */
function numbers(first: number, rows: number): Uint8Array {
  const { buffer } = BigInt64Array.from({ length: rows }, (_, at) => BigInt(first + at));
  const buffers = [0, buffer.byteLength].map((length) => ({ at: 0, length }));
  const head = batchMessage(rows, [{ nulls: 0, buffers }], buffer.byteLength, {});
  return Buffer.concat([head, Buffer.from(buffer)]);
}

/** The numbers of a file in Parquet. */
function numbersOf(file: Buffer): number[] {
  const stream = Buffer.from(readParquet(file).intoIPCStream());
  return arrowMessages(stream).flatMap(({ rows, buffers: [, values] }) =>
    Array.from({ length: rows }, (_, at) => Number(values?.readBigInt64LE(8 * at))),
  );
}

test('Parquet has all rows in their order, however many come at once', async () => {
  const parts: Uint8Array[] = [];
  const sink = new ParquetSink(
    HEAD,
    sinkTo((bytes) => void parts.push(bytes)),
    [],
  );
  let count = 0;
  try {
    // The fourth is larger than the memory that the thread shares at first, and both memories are used again behind it.
    for (const rows of [1, 250, 3_000, 400_000, 2_999, 1, 700, 2_998, 5]) {
      const messages = numbers(count, rows);
      for (let at = 0; at < messages.length; at += 100_000) sink.write(messages.subarray(at, at + 100_000));
      await sink.flush();
      count += rows;
    }
    await sink.end();
  } finally {
    await sink.close();
  }
  assert.deepEqual(
    numbersOf(Buffer.concat(parts)),
    Array.from({ length: count }, (_, at) => at),
  );
});

test('rows that the thread of Parquet cannot read reject a later flush or the end', async () => {
  const sink = new ParquetSink(
    HEAD,
    sinkTo(() => undefined),
    [],
  );
  try {
    sink.write(Buffer.from('no Arrow'));
    await sink.flush();
    sink.write(numbers(0, 1));
    await assert.rejects(async () => {
      await sink.flush();
      await sink.end();
    });
  } finally {
    await sink.close();
  }
});

test('a file that takes nothing more rejects with its own error, and not with that of the thread', async () => {
  const full = new AppError('insufficient-storage', 'The disk is full.');
  const sink = new ParquetSink(
    HEAD,
    sinkTo(() => Promise.reject(full)),
    [],
  );
  try {
    await assert.rejects(
      async () => {
        for (let n = 0; n < 100; n++) {
          sink.write(numbers(n, 10_000));
          await sink.flush();
        }
        await sink.end();
      },
      (error) => error === full,
    );
  } finally {
    await sink.close();
  }
});
