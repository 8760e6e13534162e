import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collect } from '../../../src/resources/page/body.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import { textOf } from '../../support/answers.ts';
import { onServers } from '../../support/process/each-server.ts';
import { arrayBody, batchOf } from '../../support/rows/transcode.ts';

/** A row of 16 MB, near the most that BSON can have, whose text is longer than its BSON. */
const LARGE = {
  _id: 'large',
  category: 'a',
  price: 1,
  texts: Array.from({ length: 1500 }, (_, n) => `${n}\n`.padEnd(10_000, 'tab\t')),
};

test('other work has its turns while a row of 16 MB becomes text', async () => {
  const slots = new Slots();
  const batch = batchOf(slots, arrayBody([BSON.serialize(LARGE)]));
  let turns = 0;
  let over = false;
  const count = () => {
    turns++;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  const body = await collect(batch, createTranscoder(slots).encoder('array'));
  over = true;
  assert.ok(turns >= 15, `${turns} turns`);
  assert.equal(body.bytes.length, JSON.stringify(LARGE).length - 1); // `id` for `_id`
});

onServers('combinations', (test) => {
  test('a row of 16 MB has the text that a stream gives it, and a tag', async (server) => {
    await server.insert([LARGE]);
    const answer = await server.get('/items/large');
    assert.equal(`${await textOf(answer)}\n`, await textOf(server.get('/items/stream')));
    const etag = answer.headers.get('etag') ?? '';
    assert.match(etag, /^"[0-9a-f]{16}(-\w+)?"$/);
    assert.equal((await server.get('/items/large', { 'if-none-match': etag })).status, 304);
  });
});
