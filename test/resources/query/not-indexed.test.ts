import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { chosen } from '../../../src/resources/query/not-indexed.ts';
import { KEY_INDEX } from '../../../src/store/indexes.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heap(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

const QUERIES = 20_000;
/** Each query has this many characters of its own. All of them would take 10 MB. */
const PATH = 500;

for (const [what, askedOf] of [
  ['filters', (path: string) => ({ equals: ['_id', path], ranges: [] })],
  ['an order', (path: string) => ({ equals: [], ranges: [], free: path })],
] as const)
  test(`queries with ${what} that no query had before leave little memory behind`, () => {
    const indexes = [KEY_INDEX];
    const before = heap();
    for (let n = 0; n < QUERIES; n++) {
      const { index } = chosen(askedOf(`${n}`.padEnd(PATH, 'x')), indexes, {
        declared: [],
      } as never);
      assert.equal(index, KEY_INDEX);
    }
    const left = heap() - before;
    assert.ok(left < (QUERIES * PATH) / 2, `${left} bytes are left with ${indexes.length} index`);
  });
