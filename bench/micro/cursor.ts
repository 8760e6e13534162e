/** The cost of a cursor: node --import tsx bench/micro/cursor.ts [turns] */
import assert from 'node:assert/strict';
import { numberRange } from '../../test/support/store/number-range.ts';
import { decodeCursor } from '../../test/support/resources/tokens.ts';
import { encodeCursor } from '../../src/resources/token/cursor.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { ObjectId } from '../../src/store/values/bson.ts';
import type { Plan } from '../../src/store/store.ts';
import { printMachine, takeTurns, type Work } from './turns.ts';

const turns = Number(process.argv[2]) || 20_000; // --micro is not a number
const id = new ObjectId('655b0b800000000100000000');

const kinds: Readonly<Record<string, { plan: Plan; key: { _id: unknown; price?: number } }>> = {
  'by id': { plan: { sort: '_id', direction: 1 }, key: { _id: id } },
  'by price, in a category and a range': {
    plan: {
      sort: 'price',
      direction: -1,
      equals: [{ path: 'category', value: 'toys' }],
      range: numberRange('1', '500'),
    },
    key: { price: 99.95, _id: id },
  },
  'by a string id of 200 bytes': { plan: { sort: '_id', direction: 1 }, key: { _id: 'x'.repeat(200) } },
};

const works: Record<string, { work: Work; expected: number }> = {};
for (const [name, { plan, key }] of Object.entries(kinds)) {
  const bookmark = makeBookmark(key);
  const cursor = encodeCursor('items', plan, bookmark);
  assert.deepEqual(Buffer.from(decodeCursor(cursor, 'items', plan).after), Buffer.from(bookmark), name);
  works[`encode, ${name}`] = {
    work: () => encodeCursor('items', plan, bookmark).length,
    expected: cursor.length,
  };
  works[`decode and check, ${name}`] = {
    work: () => decodeCursor(cursor, 'items', plan).after.length,
    expected: bookmark.length,
  };
}

printMachine();
takeTurns(works, turns);
