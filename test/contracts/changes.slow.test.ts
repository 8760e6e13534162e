import { MaxKey, MinKey } from '../../src/store/values/bson.ts';
import { IDS } from '../support/store/random-collection.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { keepImages } from '../support/store/parts.ts';
import { testMongoStore } from '../support/store/mongo/mongo.ts';
import type { OpenStore } from '../support/store/open-store.ts';
import { testsWith } from '../support/tests-with.ts';
import { changeFeedContract, type OpenFeed } from './changes.contract.ts';

const VALUES = ['a', 'b', 'c'];
/** In MongoDB no read can include MinKey and MaxKey. */
const ANY_IDS = [new MinKey(), new MaxKey(), ...IDS];
/** Without null, which the driver replaces on insert. */
const DRIVER_IDS = IDS.filter((id) => id !== null);

function itemsOf({ store, slots }: OpenStore, ids: readonly unknown[]): OpenFeed {
  return { rows: store.items, slots, field: 'category', values: VALUES, ids };
}

async function resourceOf({ store, slots }: OpenStore, ids: readonly unknown[]): Promise<OpenFeed> {
  const rows = await store.open({ name: 'rows', collection: 'rows', indexes: [['status']] });
  return { rows, slots, field: 'status', values: VALUES, ids };
}

changeFeedContract(testsWith(async (t) => resourceOf(await testSqlite(t), ANY_IDS), 'a resource of sqlite'));
changeFeedContract(
  testsWith(async (t) => {
    const opened = await testMongoStore(t);
    if (opened) await keepImages(t, opened.uri, 'items');
    return opened && itemsOf(opened, DRIVER_IDS);
  }, 'items of mongodb'),
);
changeFeedContract(
  testsWith(async (t) => {
    const opened = await testMongoStore(t, { lane: false });
    await opened?.client.db().createCollection('rows', { changeStreamPreAndPostImages: { enabled: true } });
    return opened && resourceOf(opened, DRIVER_IDS);
  }, 'a resource of mongodb through the driver'),
);
