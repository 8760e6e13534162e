import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from '../support/fast-check.ts';
import { itemToJson } from '../support/rows/item-json.ts';
import type { Framing, RowEncoder, Transcoder } from '../../src/rows/rows.ts';
import { Selection } from '../../src/rows/selection.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { instantiate } from '../../src/rows/wasm.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { anyRow } from '../support/rows/any-row.ts';
import {
  array,
  binary,
  code,
  int32,
  int64,
  object,
  regex,
  row,
  string,
} from '../support/rows/bson-writer.ts';
import type { Field } from '../support/rows/bson-writer.ts';
import { newMemory } from '../support/store/new-memory.ts';
import { arrayBody, batchOf, chunksOf, decode } from '../support/rows/transcode.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const LONG = process.env.LONG === '1';
const SIZES = [256, 257, 1000, 16_000, 1 << 20];
const slots = new Slots();
const wasm = createTranscoder(slots);

function framed(rows: readonly Buffer[], framing: Framing): string {
  const texts = rows.map((row) => itemToJson(row));
  return framing === 'lines' ? texts.map((text) => `${text}\n`).join('') : texts.join(',');
}

/** Rows whose every part is longer than a small chunk. */
const LONG_PARTS: Field[] = [
  ['text', string('lorem ipsum '.repeat(300))],
  ['escapes', string('"\\\n\u0001'.repeat(300))],
  ['letters', string('语言文字é'.repeat(300))],
  ['k'.repeat(3000), int32(1)],
  ['"\u0002é'.repeat(500), object([['"'.repeat(700), string('')]])],
  ['bytes', binary(0, Buffer.alloc(4001, 'base64'))],
  ['code', code('return "\\";\n'.repeat(200))],
  ['many', array(Array.from({ length: 500 }, (_, i) => int64(2n ** 60n + BigInt(i))))],
];
const rows = Array.from({ length: 5 }, (_, i) => row(i, [...LONG_PARTS.slice(i), ...LONG_PARTS.slice(0, i)]));

test('a row with a field `id` shows its key as `_id`, wherever that stands and however many chunks the row fills', () => {
  for (const framing of ['lines', 'array'] as const) {
    for (let place = 0; place <= LONG_PARTS.length; place++) {
      const own: Field[] = [['id', object([['id', string('"'.repeat(place * 90))]])]];
      const parts = [...LONG_PARTS.slice(0, place), ...own, ...LONG_PARTS.slice(place)];
      const own3 = [row(1, LONG_PARTS), row(2, parts), row(3, [...own, ...own]), row(4, [])];
      const expected = framed(own3, framing);
      assert.match(expected, /"_id":2,.*"_id":3,/s);
      const batch = batchOf(slots, arrayBody(own3));
      for (const size of [...SIZES, ...Array.from({ length: 40 }, (_, i) => 258 + i)])
        assert.equal(decode(chunksOf(wasm, batch, size, framing)), expected, `chunks of ${size}`);
      batch.release();
    }
  }
});

test('a chunk that ends at any byte of a row with a field `id` stays within its bounds', () => {
  const kinds: Field[] = [
    ['re', regex('"'.repeat(200), '')],
    ['text', string('\u0001'.repeat(200))],
    ['bytes', binary(0, Buffer.alloc(300, 7))],
    ['n', int64(-(2n ** 60n))],
  ];
  for (const kind of kinds) {
    for (let before = 0; before < 300; before++) {
      const bytes = row(1, [['a', string('x'.repeat(before))], kind, ['id', kind[1]], ['z', int32(1)]]);
      const batch = batchOf(slots, arrayBody([bytes]));
      const chunks = chunksOf(wasm, batch, 256);
      for (const chunk of chunks) assert.ok(chunk.length <= 256);
      assert.equal(decode(chunks), `${itemToJson(bytes)}\n`);
      batch.release();
    }
  }
});

for (const framing of ['lines', 'array'] as const) {
  test(`${framing}: the bytes are the same for every chunk size, and chunks are full`, () => {
    const expected = Buffer.from(framed(rows, framing));
    const batch = batchOf(slots, arrayBody(rows), 77);
    for (const size of SIZES) {
      const chunks = chunksOf(wasm, batch, size, framing);
      assert.ok(Buffer.concat(chunks).equals(expected), `chunks of ${size}`);
      for (const chunk of chunks) assert.ok(chunk.length <= size && chunk.length > 0);
      for (const chunk of chunks.slice(0, -1))
        assert.ok(chunk.length > size - 100, `${chunk.length} of ${size}`);
    }
    batch.release();
  });
}

test('commas continue from batch to batch, and an empty batch writes nothing', () => {
  const encoder = wasm.encoder('array');
  const batches = [[], rows.slice(0, 2), [], rows.slice(2, 3), rows.slice(3), []];
  const chunks: Buffer[] = [];
  for (const part of batches) {
    const batch = batchOf(slots, arrayBody(part));
    for (const chunk of encoder.encode(batch, 16_000)) chunks.push(Buffer.from(chunk));
    batch.release();
  }
  encoder.close();
  assert.equal(decode(chunks), framed(rows, 'array'));
});

test('interleaved encoders do not disturb each other', () => {
  const lots = fc.array(fc.tuple(fc.array(anyRow, { maxLength: 4 }), fc.constantFrom(...SIZES)), {
    minLength: 2,
    maxLength: 5,
  });
  const property = fc.property(lots, fc.infiniteStream(fc.nat(9)), (parts, turns) => {
    const running = parts.map(([own, size], i) => {
      const framing: Framing = i % 2 ? 'array' : 'lines';
      const encoder = wasm.encoder(framing);
      const batch = batchOf(slots, arrayBody([...own, ...rows.slice(i, i + 1)]));
      const expected = framed([...own, ...rows.slice(i, i + 1)], framing);
      return {
        encoder,
        batch,
        expected,
        steps: encoder.encode(batch, size)[Symbol.iterator](),
        chunks: [] as Buffer[],
      };
    });
    const open = new Set(running);
    while (open.size > 0) {
      const turn = [...open][Number(turns.next().value) % open.size];
      assert.ok(turn);
      const step = turn.steps.next();
      if (step.done) open.delete(turn);
      else turn.chunks.push(Buffer.from(step.value));
    }
    for (const { encoder, batch, chunks, expected } of running) {
      assert.equal(decode(chunks), expected);
      encoder.close();
      batch.release();
    }
  });
  fc.assert(property, { numRuns: LONG ? 5000 : 25 });
});

test('a string of 15 MB of control characters, which grows sixfold, needs the memory of one chunk', () => {
  const bytes = row(1, [['v', string(Buffer.alloc(15 << 20, 1))]]);
  const batch = batchOf(slots, arrayBody([bytes]));
  const encoder = wasm.encoder('lines');
  const steps = encoder.encode(batch, 16_000)[Symbol.iterator]();
  assert.equal(steps.next().done, false);
  const before = slots.memory.buffer.byteLength;
  let length = 0;
  for (const chunk of encoder.encode(batch, 16_000)) length += chunk.length;
  assert.equal(slots.memory.buffer.byteLength, before);
  assert.equal(length, '{"id":1,"v":""}\n'.length + 6 * (15 << 20));
  encoder.close();
  batch.release();
});

test('nothing is written beyond the end of a chunk', () => {
  const memory = new WebAssembly.Memory({ initial: 16 });
  const state = 3 * 65_536;
  const output = 4 * 65_536;
  const input = 8 * 65_536;
  const bytes = Buffer.from(memory.buffer);
  const fill = (out: number, length: number) => {
    bytes.fill(0x31, out, out + length);
    return length;
  };
  const wasm = instantiate(memory, {
    number: (_, out) => fill(out, 25),
    decimal: (_, out) => fill(out, 48),
    double: () => 0,
    extended: () => 1000,
    spilled: (out, length) => void fill(out, length),
  });
  const untouched = Buffer.alloc(200, 0xee);
  const property = fc.property(anyRow, fc.integer({ min: 256, max: 300 }), (some, size) => {
    const body = arrayBody([some]);
    bytes.set(body, input);
    wasm.open(state, 1, 0);
    wasm.begin(state, input, input + body.length);
    do {
      bytes.set(untouched, output + size);
      const written = wasm.run(state, output, output + size);
      assert.ok(written >= 0 && written <= size);
      assert.ok(untouched.equals(bytes.subarray(output + size, output + size + 200)));
    } while (!wasm.finished(state));
  });
  fc.assert(property, { numRuns: LONG ? 20_000 : 400 });
});

test('the output is the same when the memory grows in the middle of a batch', () => {
  const own = new Slots(new WebAssembly.Memory({ initial: 8, maximum: 2000 }));
  const transcoder = createTranscoder(own);
  const batch = batchOf(own, arrayBody(rows));
  const encoder = transcoder.encoder('lines');
  const chunks: Buffer[] = [];
  for (const chunk of encoder.encode(batch, 256)) {
    chunks.push(Buffer.from(chunk));
    if (chunks.length < 200) own.memory.grow(1);
  }
  encoder.close();
  assert.equal(decode(chunks), framed(rows, 'lines'));
});

const ENCODERS: readonly (readonly [string, (transcoder: Transcoder) => RowEncoder])[] = [
  ['lines', (transcoder) => transcoder.encoder('lines')],
  [
    'selected fields',
    (transcoder) => transcoder.encoder('array', new Selection({ fields: ['text', 'many'] })),
  ],
  ['CSV', (transcoder) => transcoder.table(['text', 'many', 'bytes'], true)],
];

for (const [what, make] of ENCODERS)
  test(`the output of ${what} is the same when a new memory is used in the middle of a batch`, async (t) => {
    const own = new Slots();
    const replace = newMemory(t, own);
    const transcoder = createTranscoder(own);
    const batch = batchOf(own, arrayBody(rows));
    const expected = Buffer.concat(chunksOf(transcoder, batch, 256, 'lines', () => make(transcoder)));
    const encoder = make(transcoder);
    const old: WeakRef<object>[] = [];
    const chunks: Buffer[] = [];
    for (const chunk of encoder.encode(batch, 256)) {
      chunks.push(Buffer.from(chunk));
      if (chunks.length > 50) continue;
      old.push(new WeakRef(own.memory));
      replace();
    }
    assert.ok(Buffer.concat(chunks).equals(expected));
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    assert.ok(
      old.length > 10 && old.every((memory) => memory.deref() === undefined),
      'no old memory is kept',
    );
    encoder.close();
  });

test('a closed encoder holds nothing and cannot be used, and tiny chunks are refused', () => {
  const own = new Slots();
  const transcoder = createTranscoder(own);
  const batch = batchOf(own, arrayBody(rows));
  const encoders = [transcoder.encoder('lines'), transcoder.encoder('array')];
  const started = encoders.map((encoder) => encoder.encode(batch, 256)[Symbol.iterator]());
  for (const steps of started) assert.equal(steps.next().done, false);
  for (const encoder of encoders) encoder.close();
  assert.equal(own.taken, 1, 'the batch');
  assert.throws(() => started[0]?.next(), /after close/);
  assert.throws(() => encoders[0]?.close(), TypeError);
  const encoder = transcoder.encoder('lines');
  assert.throws(() => [...encoder.encode(batch, 255)], RangeError);
  encoder.close();
});
