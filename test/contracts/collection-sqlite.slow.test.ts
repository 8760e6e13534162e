import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { BSON, type Document } from 'bson';

import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { testsWith } from '../support/tests-with.ts';
import { collectionContract, type PutRandom } from './collection.contract.ts';

const count = Number(process.env.COLLECTIONS ?? (process.env.LONG ? 3_000 : 190));

collectionContract(testsWith(open, 'sqlite'), { first: 0, count });

async function open(t: TestContext): Promise<PutRandom> {
  const { store, slots } = await testSqlite(t);
  let made = 0;
  return async (random) => {
    const indexes = random.indexes
      .map(({ key }) => key.map(([path]) => path))
      .map((paths) => beforeKey(paths));
    const rows = await store.open({
      name: 'rows',
      collection: `rows.${made++}`,
      indexes: indexes.filter(({ length }) => length > 0),
    });
    const { refused } = await rows.insert(
      (random.documents as Document[]).map((document) => BSON.serialize(document)),
      'fail',
    );
    assert.deepEqual(refused, []);
    return { collection: rows, slots, check: () => Promise.resolve() };
  };
}

/** The fields of an index before the key of the row, each once. */
function beforeKey(paths: readonly string[]): readonly string[] {
  const end = paths.indexOf('_id');
  return [...new Set(end < 0 ? paths : paths.slice(0, end))];
}
