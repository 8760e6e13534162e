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
  const inserts = { op: 'insert', ns: `${db.databaseName}.exports.chunks` };
  const found = await db.collection('system.profile').find(inserts).toArray();
  assert.deepEqual(
    found.map(({ ninserted }): unknown => ninserted),
    [2],
  );
});

test('a file is the same in whatever pieces it is written', async (t) => {
  const mongo = await testMongoStore(t);
  if (!mongo) return;
  const { files } = mongo.store;
  const whole = Buffer.alloc(70 * CHUNK + 5);
  for (let at = 0; at + 4 <= whole.length; at += 4) whole.writeUInt32LE(at, at);
  const piece = Buffer.alloc(whole.length);
  // The last takes several commands: MongoDB refuses one above 16 MB.
  for (const sizes of [
    [1, CHUNK - 1, CHUNK, 5],
    [CHUNK + 1, 2 * CHUNK],
    [CHUNK - 1, 2],
    [2 * CHUNK, 3, 66 * CHUNK],
  ]) {
    const writer = await files.create('a1.b2');
    for (let at = 0, n = 0; at < whole.length; n++) {
      const size = Math.min(sizes[n] ?? 20 * CHUNK - 7, whole.length - at);
      whole.copy(piece, 0, at, at + size);
      await writer.write(piece.subarray(0, size));
      piece.fill(0); // the writer keeps nothing of it
      at += size;
    }
    await writer.finish();
    const read: Uint8Array[] = [];
    for await (const bytes of files.read('a1.b2', 0, whole.length)) read.push(Buffer.from(bytes));
    assert.ok(Buffer.concat(read).equals(whole), JSON.stringify(sizes));
  }
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
