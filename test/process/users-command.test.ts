import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { runUsers } from '../../src/process/users-command.ts';
import { temporaryFolder } from '../support/directory.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { listening } from '../support/ports.ts';
import { onStores } from '../support/process/each-server.ts';
import { testServer, type TestServer } from '../support/process/server.ts';
import { Kept } from '../support/pull/pulling.ts';

/** Runs the command on the store of a server. */
async function users(argv: readonly string[], server: Pick<TestServer, 'store'> | null, input = '') {
  const stdout = new Kept();
  const stderr = new Kept();
  const code = await runUsers(argv, {
    open: () => Promise.resolve(server?.store ?? assert.fail('the store is not needed')),
    stdin: Readable.from([input]),
    stdout,
    stderr,
    signal: new AbortController().signal,
    place: 'the store',
  });
  return { code, out: stdout.bytes.toString(), said: stderr.bytes.toString() };
}

const put = (url: string, id: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${url}/api/users/${id}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

onStores(
  (t, store) => testServer(t, store, 'uws'),
  (test, store) => {
    test('users go to another store with ids, times and tags, from the store and from its server', async (server, t) => {
      const other = await testServer(t, 'sqlite', 'node');
      assert.deepEqual(await users(['export'], server), { code: 0, out: '', said: '0 users\n' }, store);
      const metadata = { team: 'r\u00f6t \u2028 "x"', __proto: '\ud83d\ude00' };
      for (let n = 0; n < 45; n++)
        await (await put(server.url, `user-${n}`, { name: `N ${n}`, email: 'a@b.example', metadata })).text();
      const ofStore = await users(['export'], server);
      assert.equal(ofStore.said, '45 users\n');
      assert.deepEqual(await users(['export', `${server.url}/`], null), ofStore, 'over three pages');

      const file = join(await temporaryFolder(t), 'users.ndjson');
      await writeFile(file, ofStore.out);
      const taken = await users(['import', file], other);
      assert.deepEqual(taken, {
        code: 0,
        out: '',
        said: '45 users written, 0 there already, 0 failed: the store\n',
      });
      for (const id of ['user-0', 'user-44']) {
        const [before, after] = await Promise.all([server, other].map((one) => one.get(`/api/users/${id}`)));
        assert.equal(await after?.text(), await before?.text());
        assert.equal(after?.headers.get('etag'), before?.headers.get('etag'));
      }
      const again = await users(['import', '-'], other, ofStore.out);
      assert.match(again.said, /^0 users written, 45 there already, 0 failed/);
      const etag = (await server.get('/api/users/user-7')).headers.get('etag') ?? '';
      const changed = await put(
        other.url,
        'user-7',
        { name: 'New', email: 'n@b.example' },
        { 'if-match': etag },
      );
      assert.equal(changed.status, 200, 'a conditional write goes on');
      const conflict = await users(['import', '-'], other, ofStore.out);
      assert.equal(conflict.code, 1);
      assert.match(
        conflict.said,
        /^line \d+: a user user-7 with other content exists: --replace replaces it\n0 users/,
      );
      assert.match(
        (await users(['import', '-', '--replace'], other, ofStore.out)).said,
        /^1 user written, 44/,
      );
      assert.equal((await users(['export'], other)).out, ofStore.out);
    });
  },
);

test('lines with faults are named, and the others are written', async (t) => {
  const server = await testServer(t, 'sqlite', 'node');
  const whole = {
    id: 'ada',
    name: 'Ada',
    email: 'a@b.example',
    createdAt: '2026-01-02T03:04:05.006Z',
    updatedAt: '2026-01-02T03:04:05.006Z',
  };
  const lines = [
    JSON.stringify(whole),
    '{',
    '[]',
    JSON.stringify({ ...whole, id: '..' }),
    JSON.stringify({ ...whole, id: 'b', createdAt: '2026-01-02' }),
    JSON.stringify({ ...whole, id: 'c', password: 'x' }),
    JSON.stringify({ ...whole, id: 'd', email: undefined }),
    '',
    JSON.stringify({ ...whole, id: 'e' }),
  ];
  const { code, said } = await users(['import', '-'], server, lines.join('\r\n'));
  assert.equal(code, 1);
  const expected = [
    /^line 2: no JSON/,
    /^line 3: expected an object/,
    /^line 4: id must be/,
    /^line 5: createdAt must be a time/,
    /^line 6: .*password/,
    /^line 7: .*email/,
    /^2 users written, 0 there already, 6 failed/,
  ];
  said
    .trimEnd()
    .split('\n')
    .forEach((line, n) => assert.match(line, expected[n] ?? /^$/));
  assert.equal((await server.get('/api/users/e')).status, 200);
});

test('a server with keys is read by the key of a file, and one that answers otherwise is refused', async (t) => {
  const server = await keyedServer(t, 'sqlite', [{ name: 'all' }], []);
  const file = join(await temporaryFolder(t), 'key');
  await writeFile(file, 'secret-of-all\n');
  assert.equal((await users(['export', server.url, '--key-file', file], null)).code, 0);
  await assert.rejects(users(['export', server.url], null), /401|key/i);
  const odd = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":{}}'),
  );
  await assert.rejects(
    users(['export', `http://127.0.0.1:${await listening(t, odd)}`], null),
    /no page of users/,
  );
  for (const wrong of [[], ['export', 'localhost:3000'], ['import'], ['export', 'http://a:b@c'], ['list']])
    await assert.rejects(users(wrong, null), { name: 'UsageError' });
});
