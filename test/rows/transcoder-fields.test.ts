import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { javascriptTranscoder, type TextTranscoder } from '../support/javascript-transcoder.ts';
import { pathFault, Selection } from '../../src/rows/selection.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { BSON } from '../../src/store/bson.ts';
import { Slots } from '../../src/store/slots.ts';
import { arrayBody, batchOf, decode } from '../support/transcode.ts';

const slots = new Slots();
const transcoder = createTranscoder(slots);

function lines(
  documents: readonly object[],
  fields: readonly string[],
  each: TextTranscoder = transcoder,
): unknown[] {
  const batch = batchOf(slots, arrayBody(documents.map((document) => BSON.serialize(document))));
  const encoder = each.encoder('lines', new Selection({ fields }));
  try {
    const text = decode(Array.from(encoder.encode(batch, 256), (chunk) => Buffer.from(chunk)));
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as unknown);
  } finally {
    encoder.close();
    batch.release();
  }
}

test('only the named top-level fields are written, in stored order, and always the key, under its name in the whole row', () => {
  const row = {
    _id: 7,
    name: 'n',
    category: 'c',
    price: 1,
    nested: { name: 'inner', _id: 1 },
    ü: 'x',
  };
  const other = { ...row, id: 'own' };
  for (const each of [transcoder, javascriptTranscoder]) {
    assert.deepEqual(lines([row], ['price', 'name'], each), [{ id: 7, name: 'n', price: 1 }]);
    assert.deepEqual(lines([row], ['nested'], each), [{ id: 7, nested: { name: 'inner', _id: 1 } }]);
    assert.deepEqual(lines([row], ['ü', 'id'], each), [{ id: 7, ü: 'x' }]);
    assert.deepEqual(lines([other], ['price'], each), [{ _id: 7, price: 1 }]);
    assert.deepEqual(lines([other], ['ü', 'id'], each), [{ _id: 7, ü: 'x', id: 'own' }]);
    assert.deepEqual(lines([other, row], ['_id'], each), [{ _id: 7 }, { id: 7 }]);
    assert.deepEqual(lines([other], [], each), [{ _id: 7 }]);
    assert.deepEqual(lines([row], [], each), [{ id: 7 }]);
    assert.deepEqual(lines([row], ['nam', 'names', 'missing', '_id'], each), [{ id: 7 }]);
  }
  assert.equal(slots.taken, 0);
});

test('wasm and JavaScript agree for any rows and any names, and write no other field', () => {
  const key = fc
    .string({ minLength: 1, maxLength: 20 })
    .filter((name) => !name.includes('\0') && name !== '__proto__');
  const row = fc
    .tuple(fc.integer(), fc.dictionary(key, fc.jsonValue({ maxDepth: 2 })))
    .map(([_id, rest]) => ({ _id, ...rest }));
  fc.assert(
    fc.property(
      fc.array(row, { minLength: 1, maxLength: 5 }),
      fc.array(key, { maxLength: 8 }),
      (rows, chosen) => {
        const names = [...chosen, ...Object.keys(rows[0] ?? {}).slice(0, 3)].filter(
          (name) => !pathFault(name),
        );
        const shown = lines(rows, names);
        assert.deepEqual(shown, lines(rows, names, javascriptTranscoder));
        for (const item of shown) {
          for (const name of Object.keys(item as object)) {
            // A chosen name with a dot is a path: it shows the field that its first part names.
            const chosen = names.some((path) => path === name || path.startsWith(`${name}.`));
            assert.ok(name === 'id' || name === '_id' || chosen, name);
          }
        }
      },
    ),
    { numRuns: process.env.LONG ? 100_000 : 1000 },
  );
});
