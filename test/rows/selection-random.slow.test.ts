import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnsOfFields } from '../../src/rows/csv-cell.ts';
import { csvLine, javascriptTranscoder, type TextTranscoder } from '../support/rows/javascript-transcoder.ts';
import type { RowEncoder } from '../../src/rows/rows.ts';
import { Selection, type SelectionPaths } from '../../src/rows/selection.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { Slots } from '../../src/store/slots.ts';
import {
  array,
  boolean,
  date,
  document,
  int32,
  nullValue,
  object,
  string,
  timestamp,
} from '../support/rows/bson-writer.ts';
import type { Field, Value } from '../support/rows/bson-writer.ts';
import { cellsOf, selected, type Row } from '../support/rows/selected.ts';
import { transcode } from '../support/rows/transcode.ts';
import { below, randomFrom } from '../support/store/random-collection.ts';

const CASES = process.env.LONG === '1' ? 2_000_000 : 4_000;
const slots = new Slots();
const wasm = createTranscoder(slots);

/** Names of which some begin like others, contain dots, are long, or look like the key's. */
const NAMES = [...'a b c aa a.b b.a a.b.c id c.id é'.split(' '), 'a name of more than sixteen bytes'];
const PATHS = [...NAMES, ...'_id a.a b.c b.c.a a.a.a c.b id.a _id.a é.a aa.b a.é.b.c'.split(' ')];

type Random = (limit: number) => number;

/** Random numbers below a limit, the same for the same seed. */
function randomOf(seed: number): Random {
  const random = randomFrom(seed);
  return (limit) => below(random, limit);
}

const pick = <T>(random: Random, list: readonly T[]): T => list[random(list.length)] as T;

function someOf<T>(random: Random, list: readonly T[], most: number): T[] {
  return [...new Set(Array.from({ length: random(most + 1) }, () => pick(random, list)))];
}

function anyValue(random: Random, depth: number): Value {
  const kind = random(depth > 5 ? 6 : 14);
  if (kind > 9) return object(anyFields(random, depth));
  if (kind > 6) return array(Array.from({ length: random(4) }, () => anyValue(random, depth + 1)));
  const scalars = [
    int32(random(100)),
    string('x,"é\n'.repeat(random(20))),
    string('y'.repeat(random(4) * 150)),
    nullValue,
    boolean(true),
    date(BigInt(random(1e9))),
    timestamp(5n), // written as an object, but without members
  ];
  return scalars[kind] ?? nullValue;
}

/** Fields of different names: the reference parses JSON, which keeps only one of two equal names. */
function anyFields(random: Random, depth: number): Field[] {
  return someOf(random, depth === 0 ? NAMES : [...NAMES, '_id'], 4).map((name) => [
    name,
    anyValue(random, depth + 1),
  ]);
}

function anyRow(random: Random): Buffer {
  const fields = anyFields(random, 0);
  fields.splice(random(4) === 0 ? random(fields.length + 1) : 0, 0, ['_id', anyValue(random, 3)]);
  return document(fields);
}

function anySelection(random: Random): SelectionPaths {
  const fields = random(4) > 0 ? someOf(random, PATHS, 5) : undefined;
  const isOfKey = (path: string) => path.split('.').some((name, n) => n === 0 && /^_?id$/.test(name));
  const kind = pick(random, ['hide', 'show', 'neither', 'neither'] as const);
  if (kind === 'hide') return { fields, hide: someOf(random, PATHS, 5).filter((path) => !isOfKey(path)) };
  return kind === 'show' ? { fields, show: someOf(random, PATHS, 6) } : { fields };
}

test('random selections of random rows are the same from wasm, from JavaScript and from a plain reference, as JSON and as CSV', () => {
  let [partial, longest] = [0, 0];
  for (let seed = 1; seed <= CASES; seed++) {
    const random = randomOf(seed);
    const rows = Array.from({ length: 1 + random(2) }, () => anyRow(random));
    const paths = anySelection(random);
    const selection = new Selection(paths);
    const size = pick(random, [256, 257, 300, 16_000]);
    const columns = paths.fields
      ? columnsOfFields(paths.fields)
      : [...new Set(['id', ...someOf(random, [...NAMES, '_id'], 6)])];
    const says = `seed ${seed}, ${JSON.stringify(paths)}, columns ${columns.join()}`;
    const written = (make: (transcoder: TextTranscoder) => RowEncoder) =>
      [wasm, javascriptTranscoder].map((each) => transcode(each, slots, rows, size, make));
    const [whole = ''] = written((each) => each.encoder('lines'));
    const parsed = whole
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Row);
    const expected = parsed.map((row) => `${JSON.stringify(selected(row, paths))}\n`).join('');
    const lines = written((each) => each.encoder('lines', selection));
    assert.deepEqual(lines, [expected, expected], says);
    const cells = parsed.map((row) => csvLine(cellsOf(row, columns, paths), false)).join('');
    const tables = written((each) => each.table(columns, false, selection));
    assert.deepEqual(tables, [cells, cells], says);
    if (expected !== whole) partial++;
    longest = Math.max(longest, expected.length);
  }
  assert.ok(partial > CASES / 2, `${partial} selections left something out`);
  assert.ok(longest > 600, 'some rows are longer than a chunk');
  assert.equal(slots.taken, 0);
});
