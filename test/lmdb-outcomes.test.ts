import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON } from '../src/store/bson.ts';
import { ChangeLog } from '../src/store/lmdb/feed/log.ts';
import { Tables, type Database } from '../src/store/lmdb/tables.ts';
import { LmdbWriter } from '../src/store/lmdb/write.ts';

test('a row without an outcome is an internal error, not a skipped row', async () => {
  const tables = new Tables(() => ({}) as Database);
  const forgetful = { run: () => Promise.resolve([] as never) };
  const gate = { isUnderWay: false, untilFree: () => Promise.resolve() };
  const log = new ChangeLog(tables, { ttlMs: 1, now: () => 0 });
  const writer = new LmdbWriter(tables, forgetful, gate, log);
  const row = BSON.serialize({ _id: 'a', category: 'b', price: 1 });
  await assert.rejects(writer.insert([row], 'skip'), TypeError);
});
