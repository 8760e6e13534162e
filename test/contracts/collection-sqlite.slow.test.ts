import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { BSON, type Document } from 'bson';
import { ITEM_COLLECTION } from '../../src/resources/item-collection.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { Slots } from '../../src/store/slots.ts';
import type { Store } from '../../src/store/store.ts';
import { resourcesContract } from './collection.contract.ts';
import { testDirectory } from '../support/sqlite.ts';

/** One store for all random collections of a test. */
const opened = new WeakMap<TestContext, Promise<{ readonly store: Store; readonly slots: Slots }>>();
let made = 0;

resourcesContract(
  'sqlite',
  { first: 0, count: Number(process.env.COLLECTIONS ?? (process.env.LONG ? 3_000 : 190)) },
  async (t, random) => {
    const opening = opened.get(t) ?? openStore(t);
    opened.set(t, opening);
    const { store, slots } = await opening;
    const collection = `rows.${made++}`;
    const indexes = random.indexes
      .map(({ key }) => key.map(([path]) => path))
      .map((paths) => beforeKey(paths));
    const rows = await store.open({
      name: 'rows',
      collection,
      indexes: indexes.filter(({ length }) => length > 0),
    });
    const { refused } = await rows.insert(
      (random.documents as Document[]).map((document) => BSON.serialize(document)),
      'fail',
    );
    assert.deepEqual(refused, []);
    return { collection: rows, slots, check: () => Promise.resolve() };
  },
);

/** The fields of an index before the key of the row, each once. */
function beforeKey(paths: readonly string[]): readonly string[] {
  const end = paths.indexOf('_id');
  return [...new Set(end < 0 ? paths : paths.slice(0, end))];
}

async function openStore(t: TestContext): Promise<{ store: Store; slots: Slots }> {
  const slots = new Slots();
  const store = await openSqlite({ items: ITEM_COLLECTION, directory: await testDirectory(t), slots });
  t.after(() => store.close());
  return { store, slots };
}
