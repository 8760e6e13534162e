import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { BSON } from '../../../src/store/values/bson.ts';
import { MongoConnection } from '../../../src/store/mongo/connection.ts';
import { writeRaw } from '../../../src/store/mongo/write/raw-write.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { serverOn } from '../../support/process/server.ts';

/** A row with a binary of the old subtype whose inner length is wrong: MongoDB stores it, and no driver can decode it. */
function damaged(_id: string): Buffer {
  const sound = Buffer.from(BSON.serialize({ _id, category: 'a', price: 2 })).subarray(4, -1);
  const binary = Buffer.concat([Buffer.from('\x05s\0'), Buffer.from('0600000002050000000102', 'hex')]);
  const row = Buffer.concat([Buffer.alloc(4), sound, binary, Buffer.alloc(1)]);
  row.writeInt32LE(row.length);
  return row;
}

test('a row that no driver can decode is 500 before the first row, and the log has its id', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) });
  const server = await serverOn(t, { MONGODB_URI: uri }, { log });
  const rows = ['a', 'b', 'd'].map((_id) => ({ _id, category: 'a', price: 1 }));
  await server.insert(rows);
  const connection = new MongoConnection(uri);
  t.after(() => connection.close());
  assert.deepEqual((await writeRaw(connection, 'items', 'insert', [damaged('c')])).errors, []);
  for (const path of [
    '/items',
    '/items?fields=price',
    '/items/c',
    ...['ndjson', 'json', 'csv', 'arrow'].map((format) => `/items/stream?format=${format}`),
    '/items/stream?checkpoints=true',
    '/items/stream?sort=price_desc',
  ]) {
    lines.length = 0;
    const response = await server.get(path);
    assert.equal(response.status, 500, path);
    assert.doesNotMatch(await response.text(), /binary|"c"/i, path);
    assert.match(lines.join(''), /The row \{\\"id\\":\\"c\\"\} cannot be decoded/, path);
  }
  const before = await server.get('/items/stream?limit=2');
  assert.equal((await before.text()).split('\n').length, 3, 'the rows before it come');
});
