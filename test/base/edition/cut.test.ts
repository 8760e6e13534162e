import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { Cutter } from '../../../src/base/edition/cut.ts';
import { nameText } from '../../../src/base/edition/names.ts';
import fc from '../../support/fast-check.ts';

const CASES = join(import.meta.dirname, '../../editions/cuts.json');

interface Case {
  readonly name: string;
  readonly target: number;
  readonly lines: readonly string[];
  readonly chunks: readonly { rows: number; bytes: number; crc32: string; name: string }[];
  readonly edition: string;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const LINE = 'a line ends with LF';

/** The chunks of rows, given in pieces. */
function cut(pieces: readonly Uint8Array[], target: number): string[] {
  const cutter = new Cutter(target);
  const chunks: string[] = [];
  let chunk: Uint8Array[] = [];
  for (const piece of pieces)
    for (let at = 0; at < piece.length;) {
      const end = cutter.take(piece, at);
      chunk.push(piece.subarray(at, end < 0 ? piece.length : end));
      at = end < 0 ? piece.length : end;
      if (end < 0) continue;
      const text = Buffer.concat(chunk).toString();
      assert.equal(cutter.bytes, Buffer.byteLength(text));
      assert.equal(cutter.rows, text.split('\n').length - 1, LINE);
      chunks.push(text);
      chunk = [];
    }
  const rest = Buffer.concat(chunk).toString();
  return rest === '' ? chunks : [...chunks, rest];
}

/** Bytes in pieces of random lengths. */
function piecesOf(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const length = lengths[n % lengths.length] ?? 1;
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

test('chunks end where the cases for all languages say', () => {
  const cases = JSON.parse(readFileSync(CASES, 'utf8')) as readonly Case[];
  assert.ok(cases.length >= 8);
  for (const { name, target, lines, chunks, edition } of cases) {
    const found = cut([Buffer.from(lines.map((line) => `${line}\n`).join(''))], target).map((text) => ({
      rows: text.split('\n').length - 1,
      bytes: Buffer.byteLength(text),
      crc32: crc32(text).toString(16).padStart(8, '0'),
      name: sha256(text),
    }));
    assert.deepEqual(found, chunks, name);
    assert.equal(sha256(nameText(found.map((one) => one.name))), edition, name);
  }
});

const id = fc.oneof(
  fc.integer(),
  fc.string({ unit: 'binary-ascii', maxLength: 12 }),
  fc.dictionary(fc.constantFrom('a', '"', ',}', '\\'), fc.constantFrom(1, '}', '],', null), { maxKeys: 2 }),
);
const row = fc.record({
  id,
  text: fc.string({ maxLength: 40 }),
  list: fc.array(fc.integer(), { maxLength: 3 }),
});
const lineOf = (one: unknown) => `${JSON.stringify(one)}\n`;

test('chunks end at the same rows however the bytes come', () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 7 });
  fc.assert(
    fc.property(
      fc.array(row, { maxLength: 60 }),
      lengths,
      fc.integer({ min: 1, max: 900 }),
      (rows, sizes, target) => {
        const bytes = Buffer.from(rows.map(lineOf).join(''));
        const whole = cut([bytes], target);
        assert.equal(whole.join(''), bytes.toString());
        assert.deepEqual(cut(piecesOf(bytes, sizes), target), whole);
      },
    ),
    { numRuns: 300 },
  );
});

test('a row that is inserted, changed or removed leaves all but two chunks as they were', () => {
  const change = fc.tuple(fc.nat(), fc.constantFrom('insert', 'change', 'remove'));
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 120 }), change, ([...rows], [at, how]) => {
      const cutAll = () => cut([Buffer.from(rows.map(lineOf).join(''))], 400);
      const before = cutAll();
      const place = at % rows.length;
      if (how === 'insert') rows.splice(place, 0, { id: `new ${at}`, text: '', list: [] });
      else if (how === 'remove') rows.splice(place, 1);
      else rows[place] = { id: rows[place]?.id ?? 0, text: `changed ${at}`, list: [] };
      const after = cutAll();
      let same = 0;
      while (same < before.length && before[same] === after[same]) same++;
      let alike = 0;
      while (alike < before.length - same && before.at(-1 - alike) === after.at(-1 - alike)) alike++;
      // What eight targets ended belongs to no row, and moves with those before it: rare, and met in none of these runs.
      assert.ok(
        before.length - same - alike <= 2,
        `${before.length - same - alike} of ${before.length} chunks`,
      );
    }),
    { numRuns: 300 },
  );
});

for (const [kind, idOf] of Object.entries({
  sequence: (n: number) => `d${String(n).padStart(7, '0')}`,
  integers: (n: number) => n,
  objectIds: (n: number) => `65f0c0de0000000000${n.toString(16).padStart(6, '0')}`,
}))
  test(`chunks have about the target's size: ${kind}`, () => {
    const text = Array.from({ length: 120_000 }, (_, n) => lineOf({ id: idOf(n), text: 'x'.repeat(n % 97) }));
    const chunks = cut([Buffer.from(text.join(''))], 16_384);
    const mean = chunks.reduce((sum, one) => sum + one.length, 0) / chunks.length;
    assert.ok(Math.abs(mean / 16_384 - 1) < 0.1, `${Math.round(mean)} bytes in ${chunks.length} chunks`);
    assert.ok(chunks.every((one) => one.length < 8 * 16_384 + 200));
  });
