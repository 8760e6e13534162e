import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { itemToJson } from '../support/rows/item-json.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { anyRow } from '../support/rows/any-row.ts';
import { array, date, double, row, string } from '../support/rows/bson-writer.ts';
import type { Value } from '../support/rows/bson-writer.ts';
import { transcode } from '../support/rows/transcode.ts';

const LONG = process.env.LONG === '1';
const slots = new Slots();
const transcoder = createTranscoder(slots);

test('wasm writes any row of any types as the serializer does, in chunks of any size', () => {
  const chunkBytes = fc.constantFrom(256, 257, 300, 1000, 16_000, 1 << 20);
  const property = fc.property(fc.array(anyRow, { minLength: 1, maxLength: 3 }), chunkBytes, (rows, size) => {
    const expected = rows.map((bytes) => `${itemToJson(bytes)}\n`).join('');
    assert.equal(transcode(transcoder, slots, rows, size), expected);
  });
  fc.assert(property, { numRuns: LONG ? 500_000 : 2000 });
});

/** Rows of 1,000 doubles against JSON.stringify, byte for byte. */
function doublesAreEqual(count: number, next: (bits: DataView) => number): void {
  const bits = new DataView(new ArrayBuffer(8));
  for (let done = 0; done < count; done += 1000) {
    const values = Array.from({ length: 1000 }, () => next(bits));
    const doubles = arrayOf(double(0).type, 1000, (bytes, at, n) => bytes.writeDoubleLE(values[n] ?? 0, at));
    const text = transcode(transcoder, slots, [row(1, [['v', doubles]])], 1 << 20);
    // Comparing whole texts first keeps a million cases fast. Only a difference starts the search for its number.
    if (text === `{"id":1,"v":${JSON.stringify(values)}}\n`) continue;
    const parts = text.slice(text.indexOf('[') + 1, text.lastIndexOf(']')).split(',');
    assert.deepEqual(
      parts,
      values.map((value) => JSON.stringify(value)),
    );
  }
}

/** An array of values of eight bytes, built quickly: all its names, which no reader uses, are "0". */
function arrayOf(type: number, count: number, write: (bytes: Buffer, at: number, n: number) => void): Value {
  const bytes = Buffer.alloc(count * 11 + 5);
  bytes.writeInt32LE(bytes.length);
  for (let n = 0; n < count; n++) {
    const at = 4 + n * 11;
    bytes[at] = type;
    bytes[at + 1] = 0x30;
    write(bytes, at + 3, n);
  }
  return { type: 4, bytes };
}

const COUNT = LONG ? 20_000_000 : 500_000;

test('doubles of random bits are written as JSON.stringify writes them', () => {
  doublesAreEqual(COUNT, (bits) => {
    bits.setUint32(0, Math.random() * 2 ** 32);
    bits.setUint32(4, Math.random() * 2 ** 32);
    return bits.getFloat64(0);
  });
});

test('random decimals, and the doubles next to them, are written as JSON.stringify writes them', () => {
  doublesAreEqual(COUNT, (bits) => {
    const digits = Math.floor(Math.random() * 10 ** Math.floor(Math.random() * 18));
    const value = digits / 10 ** Math.floor(Math.random() * 13);
    bits.setFloat64(0, Math.random() < 0.1 ? -value : value);
    const step = Math.floor(Math.random() * 8) - 2;
    if (Math.abs(step) === 1 && value !== 0) bits.setBigUint64(0, bits.getBigUint64(0) + BigInt(step));
    return bits.getFloat64(0);
  });
});

test('each day of four centuries and at the edges of centuries has the right date', () => {
  const days = Array.from({ length: 146_097 }, (_, i) => (i - 25_567) * 86_400_000);
  for (let year = -20_000; year <= 20_000; year += 100)
    days.push(Date.UTC(year, 1, 28), Date.UTC(year, 2, 0));
  const dates = arrayOf(date(0n).type, days.length, (bytes, at, n) =>
    bytes.writeBigInt64LE(BigInt(days[n] ?? 0), at),
  );
  const expected = JSON.stringify({ id: 1, v: days.map((ms) => new Date(ms)) });
  assert.ok(transcode(transcoder, slots, [row(1, [['v', dates]])], 1 << 20) === `${expected}\n`);
});

test('valid and broken UTF-8 of all classes is read as the WHATWG decoder reads it', () => {
  // Each byte that starts or ends a class of the decoder's table, alone and in all sequences of four.
  const edges = [
    0x00, 0x22, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec,
    0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff,
  ];
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let shift = 0;
  for (const a of edges) {
    for (const b of edges) {
      const texts = edges.flatMap((c) =>
        edges.map((d) => {
          // Shifted through the sixteen bytes that are examined together, after characters of one and two bytes.
          shift = (shift + 1) % 17;
          const before = shift % 2 ? 'é'.repeat(shift >> 1) + 'x' : 'y'.repeat(shift);
          return Buffer.concat([Buffer.from(before), Buffer.of(a, b, c, d), Buffer.from('语言 end')]);
        }),
      );
      const bytes = row(1, [['v', array(texts.map(string))]]);
      const expected = JSON.stringify({ id: 1, v: texts.map((text) => decoder.decode(text)) });
      assert.ok(transcode(transcoder, slots, [bytes]) === `${expected}\n`, `bytes ${a}, ${b}, any, any`);
      if (a === b || b === 0x80)
        assert.ok(itemToJson(bytes) === expected, `the serializer, bytes ${a}, ${b}`);
    }
  }
});
