import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../../src/base/errors.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { BSON, Long, MinKey, ObjectId } from '../../../src/store/values/bson.ts';
import { jsonOf, problemOf, textOf } from '../../support/answers.ts';
import { catalogue } from '../../support/resources/catalogue.ts';
import { type TestServer } from '../../support/process/server.ts';
import { decodePart, forgedToken, plainPart } from '../../support/resources/tokens.ts';
import { onServers } from '../../support/process/each-server.ts';

function codeOf(part: string): string {
  try {
    decodePart(part);
    return 'ok';
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
}

/** A part that an attacker could make: any bounds with a valid checksum. */
function forged(bounds: Uint8Array, version = 18): string {
  return forgedToken(version, Buffer.of(0), bounds);
}

test('a part carries its bounds exactly, and other bounds than ids are refused', () => {
  const range = {
    from: makeBookmark({ _id: new Long(2n ** 60n) }),
    to: makeBookmark({ _id: new ObjectId('0123456789abcdef01234567') }),
  };
  const part = plainPart(range);
  const { from, to } = decodePart(part).ids;
  assert.deepEqual(
    [from, to].map((id) => Buffer.from(id ?? [])),
    [range.from, range.to].map((id) => Buffer.from(id)),
  );
  assert.equal(codeOf(forged(BSON.serialize({}))), 'ok');
  const bad = [{ to: [1] }, { from: 1, more: 1 }, { from: /x/ }];
  for (const bounds of [{ from: { $gt: 1 } }, { to: new MinKey() }])
    assert.equal(codeOf(forged(BSON.serialize(bounds))), 'ok');
  for (const bounds of bad) assert.equal(codeOf(forged(BSON.serialize(bounds))), 'invalid-parameter');
  assert.equal(codeOf(forged(BSON.serialize({}), 2)), 'invalid-parameter');
  assert.equal(codeOf(forged(Buffer.from('ffffff7f02', 'hex'))), 'invalid-parameter');
});

async function partsOf(server: TestServer, query: string): Promise<string[]> {
  const answer = (await jsonOf(server.get(`/items/partitions?${query}`))) as {
    partitions: { url: string }[];
  };
  return answer.partitions.map(({ url }) => url);
}

onServers('stores', (test) => {
  test('the streams of all parts, one after the other, are the whole stream, in every filter and form', async (server) => {
    await server.insert(catalogue(5000).map(({ document }) => document));
    for (const query of ['', 'category=music', 'fields=n', 'format=csv&fields=price&header=absent']) {
      const whole = await textOf(server.get(`/items/stream?${query}`));
      for (const n of [1, 3, 8, 64]) {
        let joined = '';
        const urls = await partsOf(server, `n=${n}&${query}`);
        assert.ok(urls.length <= n && urls.length > n / 2, `${urls.length} of ${n}`);
        for (const url of urls) joined += await textOf(server.get(url));
        assert.ok(joined === whole, `${query} in ${n} parts`);
      }
    }
    assert.equal((await partsOf(server, '')).length, 8);
  });

  test('a part resumes by cursor and by after, and its cursors fit no other part', async (server) => {
    await server.insert(catalogue(3000).map(({ document }) => document));
    const [one = '', two = ''] = await partsOf(server, 'n=4&checkpoints=true&fields=n');
    const lines = (await textOf(server.get(two))).split('\n').slice(0, -2);
    const half = (await textOf(server.get(`${two}&limit=100`))).split('\n');
    const { end } = JSON.parse(half.at(-2) ?? '') as { end: { cursor: string; rows: number } };
    assert.equal(end.rows, 100);
    const { id } = JSON.parse(lines[99] ?? '') as { id: string | number };
    for (const from of [`cursor=${end.cursor}`, `after=${id}`]) {
      const rest = (await textOf(server.get(`${two}&${from}`))).split('\n').slice(0, -2);
      assert.deepEqual(rest, lines.slice(100), from);
    }
    const wrong = await problemOf(server.get(`${one}&cursor=${end.cursor}`));
    assert.equal(wrong.code, 'cursor-mismatch');
    for (const [query, code] of [
      [`${two}&sort=id_desc`, 'conflicting-parameters'],
      [`${two}&sort=price_asc`, 'conflicting-parameters'],
      ['/items/stream?part=x', 'invalid-parameter'],
      ['/items/partitions?n=0', 'invalid-parameter'],
      ['/items/partitions?n=65', 'invalid-parameter'],
      ['/items/partitions?sort=id_asc', 'unknown-parameter'],
    ]) {
      const refused = await problemOf(server.get(query ?? ''));
      assert.deepEqual([refused.status, refused.code], [400, code], query);
    }
  });
});
