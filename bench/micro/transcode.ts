/**
 * The cost of a row from BSON to text: node --import tsx bench/micro/transcode.ts [rows]
 *
 * Candidates for JSON write the same bytes, which is asserted first. CSV has the same values in all its
 * columns. All candidates alternate. The figures are medians of the rounds, in CPU time of this process,
 * which other processes disturb least. Compare the ratios: the absolute speed depends on the machine.
 */
import assert from 'node:assert/strict';
import { cpus } from 'node:os';
import type { RowEncoder, Transcoder } from '../../src/rows/rows.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import type { Batch } from '../../src/store/batch.ts';
import { BSON, ObjectId } from '../../src/store/values/bson.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { median } from '../results.ts';

const ROWS_PER_BATCH = 4000;
const CHUNK_BYTES = 16_000;
const ROUNDS = 7;

const wanted = Number(process.argv[2]) || 100_000;
const slots = new Slots();
const transcoder = createTranscoder(slots);

/** Kinds of rows: those of the bundled generator, and rows that stress one thing. */
const kinds: Record<string, (i: number) => Record<string, unknown>> = {
  'items of 205 bytes': (i) => ({
    name: `${word(i)} ${word(i * 7)} ${i}`,
    category: word(i * 3),
    price: Math.round(noise(i) * 100_000) / 100,
    description: Array.from({ length: 8 }, (_, k) => word(i * 5 + k * k)).join(' '),
    stock: Math.floor(noise(i + 1) * 1000),
    createdAt: new Date(1.7e12 + i * 1000),
    updatedAt: new Date(1.7e12 + i * 2000),
  }),
  'long ASCII text': (i) => ({ text: `${word(i)} `.repeat(200) }),
  'Cyrillic text': (i) => ({ text: `${word(i)} приклад тексту українською `.repeat(20) }),
  'doubles of 17 digits': (i) => ({
    a: noise(i),
    b: noise(i + 1) * 1e9,
    c: noise(i + 2) * 1e-9,
    d: noise(i) * 90,
  }),
  'nested documents': (i) => ({ a: [{ b: i, c: [i, i + 1, { d: word(i) }] }, { e: { f: { g: null } } }] }),
};

console.log(
  `${cpus()[0]?.model ?? 'unknown CPU'}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}`,
);
for (const [name, make] of Object.entries(kinds)) measure(name, make);

function measure(name: string, make: (i: number) => Record<string, unknown>): void {
  const rows = Array.from({ length: wanted }, (_, i) =>
    BSON.serialize({ _id: ObjectId.createFromTime(i), ...make(i) }),
  );
  const batches: Batch[] = [];
  for (let i = 0; i < rows.length; i += ROWS_PER_BATCH)
    batches.push(batchOf(rows.slice(i, i + ROWS_PER_BATCH)));

  const columns = ['id', ...Object.keys(make(0))];
  const candidates: Record<string, () => number> = {
    'deserialize + JSON.stringify': () => rows.reduce((sum, row) => sum + Buffer.byteLength(plain(row)), 0),
    'wasm transcoder': () => encodeAll(transcoder.encoder('lines'), batches),
    'wasm transcoder, CSV': () => encodeAll(transcoder.table(columns, false), batches),
    'wasm transcoder, safe CSV': () => encodeAll(transcoder.table(columns, true), batches),
  };
  const sample = batches.slice(0, 1);
  const text = rows.slice(0, ROWS_PER_BATCH).map(plain).join('');
  assert.equal(textOf(transcoder, sample), text);

  const times = new Map<string, number[]>(Object.keys(candidates).map((key) => [key, []]));
  const bytes = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const [key, run] of Object.entries(candidates)) {
      const start = process.cpuUsage();
      bytes.set(key, run());
      const { user, system } = process.cpuUsage(start);
      times.get(key)?.push((user + system) / 1000);
    }
  }
  for (const batch of batches) batch.release();

  const bson = rows.reduce((sum, row) => sum + row.length, 0) / rows.length;
  console.log(
    `\n${name}: ${rows.length} rows, ${Math.round(bson)} B of BSON, ${Math.round((bytes.get('wasm transcoder') ?? NaN) / rows.length)} B of JSON each`,
  );
  const baseline = median(times.values().next().value ?? []);
  for (const [key, all] of times) {
    const ms = median(all);
    const columns = [
      key.padEnd(30),
      `${Math.round(rows.length / ms).toLocaleString('en')}k rows/s`.padStart(14),
      `${Math.round((bytes.get(key) ?? NaN) / ms / 1000)} MB/s`.padStart(10),
      `${Math.round((ms * 1e6) / rows.length)} ns/row`.padStart(14),
      `${(baseline / ms).toFixed(1)}x`.padStart(8),
    ];
    console.log(columns.join(''));
  }
}

function encodeAll(encoder: RowEncoder, batches: readonly Batch[]): number {
  let bytes = 0;
  for (const batch of batches) for (const chunk of encoder.encode(batch, CHUNK_BYTES)) bytes += chunk.length;
  encoder.close();
  return bytes;
}

function textOf(candidate: Transcoder, batches: readonly Batch[]): string {
  const encoder = candidate.encoder('lines');
  const chunks: Buffer[] = [];
  for (const batch of batches)
    for (const chunk of encoder.encode(batch, CHUNK_BYTES)) chunks.push(Buffer.from(chunk));
  encoder.close();
  return Buffer.concat(chunks).toString();
}

function plain(row: Uint8Array): string {
  const { _id: id, ...rest } = BSON.deserialize(row);
  return `${JSON.stringify({ id: id as unknown, ...rest })}\n`;
}

function batchOf(rows: readonly Uint8Array[]): Batch {
  const bytes = Buffer.concat(rows.flatMap((row, i) => [Buffer.from(`\x03${i}\0`), row]));
  const slot = slots.take(bytes.length);
  slot.bytes().set(bytes);
  return {
    slot,
    start: 0,
    length: bytes.length,
    rows: rows.length,
    last: null,
    more: false,
    release: () => slot.release(),
  };
}

function word(i: number): string {
  const words =
    'lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt'.split(' ');
  return words[i % words.length] ?? '';
}

/** A number between 0 and 1, the same for the same i. */
function noise(i: number): number {
  const x = Math.sin(i + 1) * 43758.5453;
  return x - Math.floor(x);
}
