import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testMongoStore } from '../../support/store/mongo/mongo.ts';

/** A chunk of GridFS. */
const CHUNK = 255 * 1024;

test('one command writes all chunks that a piece of a file fills', async (t) => {
  const mongo = await testMongoStore(t);
  if (!mongo) return;
  const db = mongo.client.db();
  const writer = await mongo.store.files.create('a1.b2');
  await db.setProfilingLevel('all');
  await writer.write(Buffer.alloc(2 * CHUNK + 1, 'piece'));
  await db.setProfilingLevel('off');
  const inserts = { 'command.insert': 'exports.chunks' };
  const found = await db.collection('system.profile').find(inserts).toArray();
  assert.deepEqual(
    found.map(({ ninserted }): unknown => ninserted),
    [2],
  );
});

test('a chunk that a repeated command has written already is no error', async (t) => {
  const mongo = await testMongoStore(t);
  if (!mongo) return;
  const { files } = mongo.store;
  const whole = Buffer.alloc(3 * CHUNK, 'some bytes');
  const chunks = mongo.client.db().collection<{ _id: string }>('exports.chunks');
  const writer = await files.create('a1.b2');
  const first = { _id: 'a1.b2.0', files_id: 'a1.b2', n: 0, data: whole.subarray(0, CHUNK) };
  await chunks.insertOne(first);
  await writer.write(whole);
  await writer.finish();
  const read: Uint8Array[] = [];
  for await (const piece of files.read('a1.b2', 0, whole.length)) read.push(Buffer.from(piece));
  assert.ok(Buffer.concat(read).equals(whole));
});

test('a chunk that MongoDB refuses ends the write', async (t) => {
  const mongo = await testMongoStore(t);
  if (!mongo) return;
  const writer = await mongo.store.files.create('a1.b2');
  await mongo.client.db().command({ collMod: 'exports.chunks', validator: { refused: true } });
  await assert.rejects(writer.write(Buffer.alloc(CHUNK)), { code: 'store-unavailable' });
});
