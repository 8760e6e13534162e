import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Page } from '../support/answers.ts';
import { sluice } from '../support/process/commands.ts';
import { bearer, keyedServer, keysText } from '../support/access/keyed.ts';
import type { KeyGiven, KeyedServer, Rows } from '../support/access/keyed.ts';
import { logTo } from '../support/access/log-lines.ts';
import { serverOn, type StoreName } from '../support/process/server.ts';
import { PATH, usersAt, type Answer, type Sending } from '../support/users/users.ts';

const ACME: KeyGiven = { name: 'acme', where: { users: { 'metadata.tenant': 'acme' } } };
const KEYS: readonly KeyGiven[] = [
  { name: 'all' },
  ACME,
  { ...ACME, name: 'blind', hide: { users: ['metadata.tenant', 'metadata.a.b', 'email', 'updatedAt'] } },
  { name: 'eves', where: { users: { name: 'eve', email: 'str:eve@x.example' } } },
];
const ROWS: readonly Rows[] = [
  { name: 'orders', rows: [{ _id: 1 }], indexes: [] },
  { name: 'users', rows: [], indexes: [['metadata.tenant'], ['email', 'name']] },
];

const userOf = (tenant: string, more: Readonly<Record<string, string>> = {}) => ({
  name: 'eve',
  email: 'eve@x.example',
  metadata: { tenant, ...more },
});
const CONDITIONS: readonly Readonly<Record<string, string>>[] = [
  {},
  { 'if-match': '*' },
  { 'if-match': '"x"' },
  { 'if-none-match': '*' },
  { 'if-match': 'x' },
  { 'if-none-match': '"x"' },
  { prefer: 'return=minimal' },
];

type Send = (name: string, method: string, path: string, sending?: Sending) => Promise<Answer>;

/** A server with own and foreign users in turn: `u00` is own, `u01` and `u02` are not. */
async function served(server: KeyedServer, count: number): Promise<Send> {
  const users = usersAt(server.url);
  const send: Send = (name, method, path, { headers, ...more } = {}) =>
    users.send(method, path, { ...more, headers: { ...headers, ...bearer(name) } });
  for (let n = 0; n < count; n++) {
    const id = `u${String(n).padStart(2, '0')}`;
    const body = userOf(n % 3 === 0 ? 'acme' : 'FOREIGN', { n: String(n), 'a.b': 'HIDDEN' });
    assert.equal((await send('all', 'PUT', `${PATH}/${id}`, { body })).status, 201);
  }
  return send;
}

/** All of an answer that does not differ from answer to answer. */
function bare({ status, headers, text }: Answer, id: string): string {
  const kept = [...headers].filter(([name]) => !/^(date|ratelimit)$/.test(name));
  return [status, JSON.stringify(kept), text].join('\n').replaceAll(id, 'ID');
}

const idsOf = ({ json }: Answer) => (json as Page<{ readonly id: string }>).data.map(({ id }) => id);

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`${store}: users of a part`, async (t) => {
    const server = await keyedServer(t, store, KEYS, ROWS);
    if (!server) return;
    const send = await served(server, 30);
    const own = Array.from({ length: 10 }, (_, n) => `u${String(3 * n).padStart(2, '0')}`);

    await t.test('lists, offsets and cursors of a key contain only its own users', async () => {
      const list = (query: string) => send('acme', 'GET', `${PATH}${query}`);
      const all = await list('');
      assert.deepEqual(idsOf(all), own);
      assert.equal(all.headers.get('filtered-by-key'), 'true');
      assert.match(all.headers.get('vary') ?? '', /Authorization/);
      assert.doesNotMatch(all.text, /FOREIGN/);
      assert.deepEqual(idsOf(await list('?limit=3&offset=4')), own.slice(4, 7));
      assert.deepEqual(idsOf(await list('?limit=3&page=4')), own.slice(9));
      assert.deepEqual(idsOf(await list('?offset=10')), []);
      for (const size of [1, 3, 5, 10]) {
        const ids: string[] = [];
        for (let query = `?limit=${size}`; ;) {
          const answer = await list(query);
          ids.push(...idsOf(answer));
          const { hasMore, nextCursor } = (answer.json as Page<{ readonly id: string }>).page;
          assert.equal(hasMore, ids.length < own.length, `${size}: ${ids.length}`);
          const cursor = Buffer.from(String(nextCursor), 'base64url').toString('latin1');
          assert.ok(cursor.includes(ids.at(-1) ?? ''), 'the cursor is of an own user');
          if (!hasMore) break;
          query = `?limit=${size}&cursor=${String(nextCursor)}`;
        }
        assert.deepEqual(ids, own);
      }
      const foreign = await send('all', 'GET', `${PATH}?limit=2`);
      const { nextCursor } = (foreign.json as Page<{ readonly id: string }>).page;
      assert.deepEqual(
        idsOf(await list(`?cursor=${String(nextCursor)}`)),
        own.slice(1),
        'from a foreign place',
      );
      assert.equal(idsOf(await send('all', 'GET', `${PATH}?limit=1000`)).length, 30);
      assert.equal(
        (await list('')).headers.get('etag'),
        all.headers.get('etag'),
        'the tag is of the own users alone',
      );
      await send('all', 'PATCH', `${PATH}/u01`, { body: { metadata: { more: 'x' } } });
      assert.equal((await list('')).headers.get('etag'), all.headers.get('etag'));
    });

    await t.test(
      'a foreign user gets the same bytes as a missing user, for any method and precondition',
      async () => {
        const foreign = await send('all', 'GET', `${PATH}/u01`);
        const etag = foreign.headers.get('etag') ?? '';
        const bodies: Readonly<Record<string, readonly unknown[]>> = {
          GET: [undefined],
          HEAD: [undefined],
          DELETE: [undefined],
          PUT: [userOf('acme'), userOf('other'), { name: 'eve', email: 'eve@x.example' }, { name: '' }, '{'],
          PATCH: [
            {},
            { name: 'x' },
            { metadata: null },
            { metadata: { tenant: 'acme' } },
            { metadata: { n: 1 } },
          ],
        };
        for (const headers of [...CONDITIONS, { 'if-match': etag }, { 'if-none-match': etag }])
          for (const [method, given] of Object.entries(bodies))
            for (const body of given) {
              const ask = async (id: string) =>
                bare(
                  await send('acme', method, `${PATH}/${id}`, {
                    body,
                    headers: { 'x-request-id': 'same', ...headers },
                  }),
                  id,
                );
              const at = JSON.stringify({ headers, method, body });
              const taken = await ask('u01');
              const free = await ask('z01');
              assert.equal(taken, free, at);
              assert.match(taken, /^4(?!12)/, at);
            }
        assert.equal((await send('all', 'GET', `${PATH}/u01`)).text, foreign.text, 'nothing was written');
        assert.equal((await send('all', 'GET', `${PATH}/z01`)).status, 404, 'nothing was created');
      },
    );

    await t.test('each write leaves the user inside the part, or writes nothing', async () => {
      const at = `${PATH}/u03`;
      const before = await send('acme', 'GET', at);
      for (const [method, body] of [
        ['PUT', userOf('other')],
        ['PATCH', { metadata: { tenant: 'other' } }],
        ['PATCH', { metadata: { tenant: null } }],
        ['PATCH', { metadata: null }],
      ] as const) {
        const refused = await send('acme', method, at, { body });
        assert.equal(refused.status, 422, refused.text);
        const { errors } = refused.json as { errors: [{ pointer: string; detail: string }] };
        assert.equal(errors[0].pointer, '/metadata/tenant');
        assert.match(errors[0].detail, /expected "acme"/);
        assert.equal((await send('acme', 'GET', at)).text, before.text);
      }
      const etag = before.headers.get('etag') ?? '';
      const failed = await send('acme', 'PUT', at, {
        body: userOf('acme'),
        headers: { 'if-none-match': '*' },
      });
      assert.equal(failed.status, 412);
      const put = await send('acme', 'PUT', at, {
        body: { name: 'eva', email: 'e@x.example' },
        headers: { 'if-match': etag },
      });
      assert.equal(put.status, 200);
      assert.deepEqual((put.json as { metadata: object }).metadata, { tenant: 'acme' }, 'PUT sets the value');
      const patched = await send('acme', 'PATCH', at, { body: { metadata: { n: '1' } } });
      assert.deepEqual((patched.json as { metadata: object }).metadata, { tenant: 'acme', n: '1' });
    });

    await t.test('a new user has the values of the part', async () => {
      const made = await send('acme', 'POST', PATH, { body: { name: 'new', email: 'n@x.example' } });
      assert.equal(made.status, 201);
      const { id, metadata } = made.json as { id: string; metadata: object };
      assert.deepEqual(metadata, { tenant: 'acme' });
      assert.equal((await send('acme', 'GET', `${PATH}/${id}`)).status, 200);
      assert.equal((await send('acme', 'POST', PATH, { body: userOf('acme', { a: 'b' }) })).status, 201);
      const refused = await send('acme', 'POST', PATH, { body: userOf('other') });
      assert.equal(refused.status, 422, refused.text);
      const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`n${n}`, '']));
      const full = await send('acme', 'POST', PATH, { body: { ...userOf('x'), metadata: many } });
      assert.equal(full.status, 422, 'the value of the part counts');
      const eve = { name: 'eve', email: 'eve@x.example' };
      assert.equal((await send('eves', 'POST', PATH, { body: eve })).status, 201);
      assert.equal((await send('eves', 'POST', PATH, { body: { ...eve, name: 'Eve' } })).status, 422);
      const deleted = await send('acme', 'DELETE', `${PATH}/${id}`);
      assert.equal(deleted.status, 200);
    });

    await t.test(
      'no answer contains a hidden field of a user, and no write changes such a user',
      async () => {
        for (const path of [PATH, `${PATH}/u06`]) {
          const { status, text } = await send('blind', 'GET', path);
          assert.equal(status, 200);
          assert.doesNotMatch(text, /tenant|acme|HIDDEN|email|updatedAt|FOREIGN/);
          assert.match(text, /"metadata":\{"n":"6"\}/);
        }
        const seen = await send('blind', 'GET', `${PATH}/u06`);
        await send('all', 'PATCH', `${PATH}/u06`, { body: { email: 'hidden@x.example' } });
        const again = await send('blind', 'GET', `${PATH}/u06`, {
          headers: { 'if-none-match': seen.headers.get('etag') ?? '' },
        });
        assert.equal(again.status, 304, 'the tag is of what is shown');
        const { components } = (await (await server.as('blind', '/openapi.json')).json()) as {
          components: { schemas: Record<string, { required?: unknown; properties: object }> };
        };
        assert.equal(components.schemas.ShownUser?.required, undefined);
        assert.ok('email' in (components.schemas.ShownUser?.properties ?? {}));
        // Answers are compared with the document of everybody, whose users have all fields.
        const faults = server.check.faults;
        for (const fault of faults.splice(0))
          assert.match(fault, /u06\? -> 200: .* required property 'email'/);
        for (const id of ['u06', 'u01', 'z01'])
          for (const method of ['PUT', 'PATCH', 'DELETE']) {
            const refused = await send('blind', method, `${PATH}/${id}`, { body: userOf('acme') });
            assert.equal(refused.status, 403, `${method} ${id}`);
            assert.match(refused.text, /hides fields of users/);
          }
        assert.equal((await send('blind', 'POST', PATH, { body: userOf('acme') })).status, 403);
      },
    );

    await t.test('a key cannot write a user that leaves its part during the request', async () => {
      const at = `${PATH}/u09`;
      for (let round = 0; round < 10; round++) {
        await send('all', 'PUT', at, { body: userOf('acme') });
        const answers = await Promise.all([
          ...Array.from({ length: 5 }, (_, n) =>
            send('acme', n % 2 ? 'PATCH' : 'PUT', at, {
              body: n % 2 ? { name: `n${n}` } : { ...userOf('acme'), name: `n${n}` },
            }),
          ),
          send('all', 'PUT', at, { body: { ...userOf('FOREIGN'), name: 'moved' } }),
          ...Array.from({ length: 5 }, (_, n) =>
            send('acme', n % 2 ? 'DELETE' : 'PUT', at, {
              body: userOf('acme'),
            }),
          ),
        ]);
        for (const { status, text } of answers) {
          assert.ok([200, 201, 404].includes(status), text);
          if (text.includes('FOREIGN')) assert.match(text, /"moved"/);
        }
        const now = await send('all', 'GET', at);
        const { name, metadata } = now.json as { name: string; metadata: { tenant: string } };
        assert.deepEqual([name, metadata.tenant], ['moved', 'FOREIGN'], 'a foreign user stays as it is');
      }
    });
  });

test('what users cannot be chosen by is a fault of the file', async (t) => {
  const server = await keyedServer(t, 'sqlite', KEYS, ROWS);
  for (const part of [
    { where: { users: { country: 'de' } } },
    { where: { users: { id: 'ada' } } },
    { where: { users: { metadata: 'x' } } },
    { where: { users: { createdAt: '2026-01-01T00:00:00Z' } } },
    { where: { users: { 'metadata.tenant': 1 } } },
    { where: { users: { 'metadata.tenant': null } } },
    { where: { users: { 'metadata.$x': 'x' } } },
    { where: { users: { 'metadata.a.b': 'x' } } },
    { where: { users: { name: '' } } },
    { where: { users: { email: 'x' } } },
    { hide: { users: ['country'] } },
    { hide: { users: ['id'] } },
  ])
    assert.equal(
      await server.rewrite([{ name: 'all' }, { name: 'bad', ...part }]),
      false,
      JSON.stringify(part),
    );
  assert.equal(await server.rewrite(KEYS), true);
});

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`${store}: a part of users that no index answers is refused with the command that makes one`, async (t) => {
    const lines: string[] = [];
    const settings = { MONGODB_PREFIX: 'own_' };
    const server = await keyedServer(t, store, [{ name: 'all' }], ROWS.slice(0, 1), settings, {
      log: logTo(lines),
    });
    if (!server) return;
    const keys = [
      { name: 'all' },
      { name: 'red', where: { users: { 'metadata.team': 'red', name: 'eve' } } },
    ];
    assert.equal(await server.rewrite(keys), false);
    assert.match(
      lines.join('\n'),
      /key red: users: no index answers where; this one would: sluice index users metadata.team,name/,
    );
    assert.equal(await server.rewrite([{ name: 'odd', where: { users: { 'metadata.1': 'x' } } }]), false);
    assert.match(lines.join('\n'), /key odd: users: where: metadata.1 has a number in its path/);
    const { code, said } = await sluice(['index', 'users', 'metadata.team,name'], {
      ...server.place,
      ...settings,
    });
    assert.equal(code, 0, said);
    assert.match(said, /created the index metadata.team_1_name_1__id_1 of users/);
    writeFileSync(server.keysFile, keysText(keys));
    const again = await serverOn(t, { API_KEYS_FILE: server.keysFile, ...server.place, ...settings });
    const answer = await fetch(again.url + PATH, { headers: bearer('red') });
    assert.deepEqual(((await answer.json()) as Page<{ readonly id: string }>).data, []);
  });
