import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON } from '../src/store/bson.ts';
import { Tables, type Database } from '../src/store/lmdb/tables.ts';
import { LmdbWriter } from '../src/store/lmdb/write.ts';

test('a row whose outcome is missing is our own mistake, not a row that was there', async () => {
  const tables = new Tables(() => ({}) as Database);
  const forgetful = { run: () => Promise.resolve([] as never) };
  const writer = new LmdbWriter(tables, forgetful);
  const row = BSON.serialize({ _id: 'a', category: 'b', price: 1 });
  await assert.rejects(writer.insert([row], 'skip'), TypeError);
});
