import assert from 'node:assert/strict';
import { test } from 'node:test';
import { itemToJson } from '../../support/rows/item-json.ts';
import { Selection } from '../../../src/rows/selection.ts';
import { BSON, Decimal128, Double, Int32, type Document } from '../../../src/store/values/bson.ts';
import { isSameButHidden } from '../../../src/store/scope/predicate.ts';
import { below, oneOf, randomFrom, type Random } from '../../support/store/random-collection.ts';

const CASES = process.env.LONG === '1' ? 500_000 : 2_000;

const NAMES = ['a', 'b', 'aa', 'a.b', 'é', '_id'];
const PATHS = ['a', 'b', 'aa', 'a.b', 'a.b.a', 'b.a', 'b.é', 'é', 'a.a.b'];

function shown(row: Uint8Array, hide: readonly string[]): string {
  return itemToJson(row, new Selection({ hide }));
}

function valueOf(random: Random, depth: number): unknown {
  const kind = below(random, depth > 2 ? 2 : 5);
  if (kind < 2) return kind === 0 ? below(random, 2) : oneOf(random, ['x', 'y']);
  const members = Array.from({ length: below(random, 3) }, () => valueOf(random, depth + 1));
  if (kind === 2) return members;
  return fieldsOf(random, depth + 1);
}

function fieldsOf(random: Random, depth: number): Document {
  const names = NAMES.filter((name) => (depth > 0 || name !== '_id') && random() < 0.5);
  return Object.fromEntries(names.map((name) => [name, valueOf(random, depth)]));
}

/** The same row with one value changed somewhere, or added, or removed. */
function changed(value: unknown, random: Random, depth: number): unknown {
  if (Array.isArray(value) && value.length > 0 && random() < 0.8) {
    const at = below(random, value.length);
    return value.map((one: unknown, n) => (n === at ? changed(one, random, depth + 1) : one));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return valueOf(random, depth);
  const name = oneOf(random, NAMES);
  const { [name]: before, ...others } = value as Document;
  if (depth === 0 && name === '_id') return value;
  if (before === undefined) return { ...others, [name]: valueOf(random, depth + 1) };
  if (random() < 0.1) return others;
  return { ...value, [name]: changed(before, random, depth + 1) };
}

test('two states of a row look the same exactly when what is shown of them is the same', () => {
  const random = randomFrom(1);
  let same = 0;
  for (let n = 0; n < CASES; n++) {
    const before = { _id: below(random, 2), ...fieldsOf(random, 0) };
    const after = random() < 0.02 ? { ...before, _id: 2 } : (changed(before, random, 0) as Document);
    const hide = Array.from({ length: 1 + below(random, 2) }, () => oneOf(random, PATHS));
    const a = BSON.serialize(before);
    const b = BSON.serialize(after);
    const isSame = shown(a, hide) === shown(b, hide);
    if (isSameButHidden(a, b, hide) !== isSame) assert.fail(JSON.stringify([before, after, hide]));
    if (isSame && Buffer.compare(a, b) !== 0) same++;
  }
  assert.ok(same > CASES / 50, `${same} pairs differed in hidden fields alone`);
});

test('equal values of different types do not look the same', () => {
  const pairs = [
    [new Int32(7), new Double(7)],
    [Decimal128.fromString('1.0'), Decimal128.fromString('1.00')],
  ];
  for (const pair of pairs) {
    const [before = new Uint8Array(0), after = new Uint8Array(0)] = pair.map((a) =>
      BSON.serialize({ _id: 1, a }),
    );
    assert.equal(isSameButHidden(before, after, ['b']), false);
    assert.equal(isSameButHidden(before, after, ['a']), true);
  }
});
