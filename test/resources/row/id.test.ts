import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idsShownAs } from '../../../src/resources/row/id.ts';
import { keyOf, makeBookmark, type Bookmark } from '../../../src/store/bookmark.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { BSON_TYPE } from '../../../src/store/values/bson-types.ts';
import { KEY_INDEX } from '../../../src/store/indexes.ts';
import type { Collection } from '../../../src/store/store.ts';
import { SEED } from '../../support/seed.ts';
import { NEVER } from '../../support/store/reading.ts';
import { randomFrom } from '../../support/store/random-collection.ts';
import { randomText } from '../../support/store/random-texts.ts';

const TEXTS = 2_000;

/** Rows in which values of these brackets are found. */
function rowsWith(has: (bracket: number) => boolean): Collection {
  return {
    describe: () => Promise.resolve({ identity: undefined, indexes: [KEY_INDEX] }),
    nextValue: (_index, _equals, { range }) =>
      Promise.resolve(has(range?.bracket ?? 0) ? makeBookmark({ _id: 1 }) : null),
  } as Partial<Collection> as Collection;
}

function bracketOf(id: Bookmark): number {
  const type = id[4] ?? 0;
  const isNumber = [BSON_TYPE.double, BSON_TYPE.int64, BSON_TYPE.decimal128].some((one) => one === type);
  return isNumber ? BSON_TYPE.int32 : type;
}

test(`${TEXTS} random texts are read as ids that a command can carry, a text first`, async () => {
  const random = randomFrom(SEED);
  const rows = rowsWith(() => true);
  const kinds = new Set<number>();
  for (let n = 0; n < TEXTS; n++) {
    const text = randomText(random);
    const ids = await idsShownAs(text, { rows }, NEVER);
    assert.equal(keyOf(ids[0]?.id ?? assert.fail())._id, text);
    for (const { id } of ids) {
      const again = BSON.serialize(keyOf(id), { ignoreUndefined: false });
      assert.equal(
        Buffer.compare(again, id),
        0,
        `${JSON.stringify(text)}: ${Buffer.from(id).toString('hex')}`,
      );
      kinds.add(bracketOf(id));
    }
  }
  assert.ok(kinds.size >= 8, `of ${[...kinds].join()}`);
});

test('a text is read as the kinds alone that a look at the ids finds', async () => {
  const random = randomFrom(SEED);
  const kinds = [BSON_TYPE.string, BSON_TYPE.int32, BSON_TYPE.objectId, BSON_TYPE.binary, BSON_TYPE.date];
  for (const kind of kinds) {
    const rows = rowsWith((bracket) => bracket === kind);
    for (let n = 0; n < 200; n++) {
      const text = randomText(random);
      const all = await idsShownAs(text, { rows: rowsWith(() => true) }, NEVER);
      const ids = await idsShownAs(text, { rows }, NEVER);
      // One reading needs no look, and what shows as null is read whatever is found.
      if (all.length === 1 || text === 'null' || text.startsWith('{')) continue;
      assert.deepEqual(
        ids,
        all.filter(({ id }) => bracketOf(id) === kind),
        text,
      );
    }
  }
});
