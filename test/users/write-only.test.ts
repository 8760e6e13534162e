import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bearer, keyedServer, type KeyGiven } from '../support/access/keyed.ts';
import { PATH, usersAt, type Answer } from '../support/users/users.ts';

const KEYS: readonly KeyGiven[] = [
  { name: 'all' },
  { name: 'writes', resources: ['users'], actions: ['users:write'] },
  { name: 'both', resources: ['users'], actions: ['users:write', 'read'] },
];
const EVE = { name: 'HIDDEN', email: 'hidden@x.example', metadata: { team: 'HIDDEN' } };

test('a key that may only write users learns nothing about them', async (t) => {
  const server = await keyedServer(t, 'sqlite', KEYS, [{ name: 'orders', rows: [{ _id: 1 }], indexes: [] }]);
  const users = usersAt(server.url);
  const send = (name: string, method: string, path: string, body?: unknown, headers = {}): Promise<Answer> =>
    users.send(method, path, { body, headers: { ...headers, ...bearer(name) } });
  assert.equal((await send('all', 'PUT', `${PATH}/eve`, EVE)).status, 201);
  const etag = (await send('all', 'GET', `${PATH}/eve`)).headers.get('etag') ?? '';
  assert.equal((await send('writes', 'GET', `${PATH}/eve`)).status, 403);

  const merge = { 'content-type': 'application/merge-patch+json' };
  const ways = [
    ['PATCH', {}, {}, 204],
    ['PATCH', {}, merge, 204],
    ['PATCH', {}, { prefer: 'return=representation' }, 204],
    ['PATCH', {}, { 'if-match': '*' }, 204],
    ['PATCH', {}, { 'if-match': etag }, 204],
    ['PATCH', {}, { 'if-match': '"x"' }, 412],
    ['PATCH', {}, { 'if-none-match': '*' }, 412],
    ['PATCH', {}, { 'if-none-match': `"x", ${etag}` }, 412],
    ['PATCH', { metadata: { team: 7 } }, {}, 422],
    ['PUT', EVE, { 'if-match': '"x"' }, 412],
    ['PUT', EVE, { 'if-none-match': '*' }, 412],
    ['DELETE', undefined, { 'if-match': '"x"' }, 412],
    ['PATCH', { metadata: { desk: '7' } }, {}, 204],
    ['PUT', { name: 'b', email: 'b@b' }, { prefer: 'return=representation' }, 204],
  ] as const;
  for (const [method, body, headers, status] of ways) {
    const answer = await send('writes', method, `${PATH}/eve`, body, headers);
    const shown = JSON.stringify([...answer.headers]) + answer.text;
    const asked = JSON.stringify(headers);
    assert.equal(answer.status, status, `${method} ${asked} ${shown}`);
    assert.doesNotMatch(shown, /hidden/i);
    assert.equal(answer.headers.get('etag'), null);
    assert.ok(asked.includes(etag.slice(1, -1)) || !shown.includes(etag.slice(1, -1)), shown);
    assert.equal(answer.text === '', status === 204);
  }
  for (const [method, path] of [
    ['POST', PATH],
    ['PUT', `${PATH}/bob`],
  ] as const) {
    const made = await send('writes', method, path, EVE);
    assert.equal(made.status, 201);
    assert.equal(made.text, '');
    assert.equal(made.headers.get('etag'), null);
    const url = made.headers.get('location') ?? '';
    assert.equal(((await send('all', 'GET', url)).json as { name: string }).name, 'HIDDEN');
  }
  const seen = await send('both', 'PATCH', `${PATH}/bob`, {});
  assert.equal(seen.status, 200);
  assert.match(seen.text, /HIDDEN/);
});
