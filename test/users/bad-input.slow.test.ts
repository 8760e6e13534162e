import assert from 'node:assert/strict';
import fc, { anyCharacter } from '../support/fast-check.ts';
import type { User } from '../../src/users/user.ts';
import { rawExchange } from '../support/engine/raw.ts';
import { testServer, type EngineName } from '../support/process/server.ts';
import { shared, testsWith } from '../support/tests-with.ts';
import { codeOf, PATH, usersAt, type Answer } from '../support/users/users.ts';

const RUNS = process.env.LONG ? 20_000 : 300;

const JSON_TYPE = 'application/json';
const MERGE_TYPE = 'application/merge-patch+json';
const ADA = { name: 'Ada', email: 'ada@example.org' };
const texts = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'x']));

/** An invalid body -> all places at fault. */
const BODIES: readonly [body: unknown, pointers: readonly string[]][] = [
  [{}, ['/name', '/email']],
  [[], ['']],
  ['"text"', ['']],
  ['null', ['']],
  ['7', ['']],
  [{ ...ADA, name: '' }, ['/name']],
  [{ ...ADA, name: 'x'.repeat(201) }, ['/name']],
  [{ ...ADA, name: '𝄞'.repeat(201) }, ['/name']],
  [{ ...ADA, name: null }, ['/name']],
  [{ ...ADA, name: { $ne: null } }, ['/name/$ne', '/name']],
  [{ ...ADA, email: 'no-at-sign' }, ['/email']],
  [{ ...ADA, email: '@b' }, ['/email']],
  [{ ...ADA, email: 'a@' }, ['/email']],
  [{ ...ADA, email: 'a@b@c' }, ['/email']],
  [{ ...ADA, email: `${'a'.repeat(320)}@b` }, ['/email']],
  [{ ...ADA, metadata: [] }, ['/metadata']],
  [{ ...ADA, metadata: null }, ['/metadata']],
  [{ ...ADA, metadata: texts(51) }, ['/metadata']],
  [{ ...ADA, metadata: { a: 1, b: null, c: ['x'], ok: '' } }, ['/metadata/a', '/metadata/b', '/metadata/c']],
  [{ ...ADA, metadata: { a: 'x'.repeat(501) } }, ['/metadata/a']],
  [{ ...ADA, metadata: { ['x'.repeat(501)]: 'a' } }, [`/metadata/${'x'.repeat(501)}`]],
  [{ ...ADA, metadata: { 'a/b~c': 1 } }, ['/metadata/a~1b~0c']],
  [{ ...ADA, id: 'mine', createdAt: 'now', _id: 1 }, ['/id', '/createdAt', '/_id']],
  ['{"name":"a","name":"","email":"a@b"}', ['/name']],
  ['{"name":"\\ud800","email":"a@b"}', ['/name']],
  ['{"name":"a","email":"a@b","__proto__":{"polluted":1}}', ['/__proto__']],
  ['{"name":"a","email":"a@b","metadata":{"__proto__":"x"}}', ['/metadata/__proto__']],
  ['{"name":"a","email":"a@b","constructor":{"prototype":{"polluted":1}}}', ['/constructor']],
  ['{"name":"a","email":"a@b","prototype":1,"toString":1}', ['/prototype', '/toString']],
  [
    '{"name":"a","email":"a@b","metadata":{"$where":"1","\\u0000":"x"}}',
    ['/metadata/$where', '/metadata/\0'],
  ],
  ['{"name":"a","email":"a@b","metadata":{"_bsontype":"ObjectId"}}', ['/metadata/_bsontype']],
  [
    { name: '', email: 'x', $set: {}, metadata: { $ne: 'x', n: 1 }, extra: true },
    ['/$set', '/metadata/$ne', '/name', '/email', '/metadata/n', '/extra'],
  ],
];

/** Content-Type, body, other headers -> status, and the header that names what is accepted. */
const FORMS: readonly [
  method: string,
  type: string,
  body: string,
  status: number,
  accepted?: readonly [name: string, value: string] | null,
  headers?: Readonly<Record<string, string>>,
][] = [
  ['POST', 'text/plain', '{}', 415, ['accept-post', JSON_TYPE]],
  ['POST', MERGE_TYPE, '{}', 415, ['accept-post', JSON_TYPE]],
  ['POST', 'application/json; charset=latin1', '{}', 415, ['accept-post', JSON_TYPE]],
  ['PUT', 'application/xml', '{}', 415, ['accept', JSON_TYPE]],
  ['PATCH', 'application/json-patch+json', '[]', 415, ['accept-patch', `${JSON_TYPE}, ${MERGE_TYPE}`]],
  ['POST', JSON_TYPE, '{}', 415, ['accept-encoding', 'identity'], { 'content-encoding': 'gzip' }],
  ['POST', 'Application/JSON; charset="UTF-8"', '{}', 422, null, { 'content-encoding': 'identity' }],
  ['POST', JSON_TYPE, '', 400],
  ['POST', JSON_TYPE, '{"name":', 400],
  ['PATCH', JSON_TYPE, '[]', 422],
  ['POST', JSON_TYPE, `"${'x'.repeat(1024 * 1024)}"`, 413],
  ['PUT', JSON_TYPE, '{}', 400, null, { 'if-match': 'no-quotes' }],
  ['PUT', JSON_TYPE, '{}', 400, null, { 'if-none-match': '"a" "b"' }],
  ['PUT', JSON_TYPE, '{}', 406, null, { accept: 'text/html' }],
];

const server = shared((t) => testServer(t, 'sqlite', 'uws', { RATE_LIMIT: 'off' }));
const test = testsWith(async (t) => usersAt(((await server(t)) ?? assert.fail()).url));

test('every fault of a body is reported with its place, all at once, and nothing is written', async (users) => {
  await users.put('ada', ADA);
  const listed = await users.send('GET', PATH);
  for (const [body, pointers] of BODIES)
    for (const [method, path] of [
      ['POST', PATH],
      ['PUT', `${PATH}/ada`],
    ] as const) {
      const answer: Answer = await users.send(method, path, { body });
      const errors = (answer.json as { errors?: { pointer: string; detail: string }[] }).errors ?? [];
      assert.deepEqual([answer.status, codeOf(answer)], [422, 'invalid-body'], answer.text);
      assert.deepEqual(errors.map(({ pointer }) => pointer).sort(), [...pointers].sort(), answer.text);
      for (const { detail } of errors) assert.ok(detail.length > 10, detail);
    }
  assert.equal((await users.send('GET', PATH)).text, listed.text);
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  const merged = { metadata: texts(50) };
  assert.equal((await users.send('PATCH', `${PATH}/ada`, { body: merged })).status, 200);
  const more = await users.send('PATCH', `${PATH}/ada`, { body: { metadata: { more: 'x' } } });
  assert.deepEqual([more.status, codeOf(more)], [422, 'invalid-body'], 'a merge may not exceed the limit');
});

test('of a name that stands twice, the last value counts', async (users) => {
  const body = '{"name":"","metadata":{"a":"x"},"name":"b","email":"a@b","metadata":{"a":"y","a":"z"}}';
  const answer = await users.send('POST', PATH, { body });
  const { name, metadata } = answer.json as { name: string; metadata: unknown };
  assert.deepEqual([answer.status, name, metadata], [201, 'b', { a: 'z' }]);
});

test('values of the greatest allowed length are accepted', async (users) => {
  const wide = Object.fromEntries(
    Array.from({ length: 50 }, (_, n) => [`${n}`.padEnd(500, 'é'), '𝄞'.repeat(500)]),
  );
  const user = { name: '𝄞'.repeat(200), email: `${'ß'.repeat(318)}@b`, metadata: wide };
  const { metadata } = await users.put('x'.repeat(64), user);
  assert.deepEqual(metadata, wide);
});

test('a body of another media type is refused with the accepted ones', async (users) => {
  for (const [method, type, body, status, accepted, more] of FORMS) {
    const path = method === 'POST' ? PATH : `${PATH}/ada`;
    const headers = { 'content-type': type, ...more };
    const answer: Answer = await users.send(method, path, { body, headers });
    const at = `${method} ${JSON.stringify(headers)}: ${answer.text.slice(0, 300)}`;
    assert.equal(answer.status, status, at);
    if (accepted) assert.equal(answer.headers.get(accepted[0]), accepted[1]);
  }
});

test('every operation refuses parameters it does not know, operators among them', async (users) => {
  await users.put('ada', ADA);
  const queries = [
    'x=1',
    '__proto__=1',
    'constructor=1',
    '$where=1',
    'name[$ne]=',
    'sort=id_asc',
    'fields=id',
    '%zz',
  ];
  for (const query of queries)
    for (const [method, path] of [
      ['GET', PATH],
      ['POST', PATH],
      ...['GET', 'PUT', 'PATCH', 'DELETE'].map((name) => [name, `${PATH}/ada`] as const),
    ] as const) {
      const body = ['GET', 'DELETE'].includes(method) ? undefined : ADA;
      const answer: Answer = await users.send(method, `${path}?${query}`, { body });
      assert.equal(answer.status, 400, `${method} ${query}`);
    }
  for (const query of ['limit=0', 'limit=1001', 'page=0', 'offset=-1', 'page=1&offset=1', 'cursor=x'])
    assert.equal((await users.send('GET', `${PATH}?${query}`)).status, 400, query);
  assert.equal((await users.get('ada')).status, 200, 'nothing was changed');
});

test('an invalid id is refused by PUT and not found by the others, and none of its characters reaches a header', async (users) => {
  const bad = ['$ne', 'a%0d%0aset-cookie:x=1', 'a%00', 'a%2Fb', '%C3%A4', 'x'.repeat(65), 'a b'];
  for (const id of bad) {
    const put = await users.send('PUT', `${PATH}/${id}`, { body: ADA });
    assert.deepEqual([put.status, codeOf(put)], [400, 'invalid-url'], id);
    assert.equal(put.headers.get('set-cookie'), null);
    for (const method of ['GET', 'DELETE'])
      assert.equal((await users.send(method, `${PATH}/${id}`)).status, 404, `${method} ${id}`);
    assert.equal((await users.send('PATCH', `${PATH}/${id}`, { body: {} })).status, 404, id);
  }
  for (const id of ['__proto__', 'constructor', 'prototype', 'toString', '...', '~', '-', '_id']) {
    assert.equal((await users.get(id)).status, 404, id);
    assert.equal((await users.put(id, ADA)).id, id);
    assert.equal((await users.send('DELETE', `${PATH}/${id}`)).status, 200, id);
  }
  assert.deepEqual(Object.keys(Object.prototype), []);
});

for (const engine of ['uws', 'node'] satisfies EngineName[])
  testsWith((t) => testServer(t, 'sqlite', engine), engine)(
    'an id of dots, or with an escape, is refused as it came',
    async ({ url }, t) => {
      // As raw bytes, because fetch would resolve dots before sending them.
      for (const id of ['.', '..', '%2e', '%2E%2e', 'a%0d%0aX-Evil:1']) {
        const head = [
          'Host: localhost',
          'Connection: close',
          'Content-Type: application/json',
          'Content-Length: 2',
        ];
        const request = [`PUT ${PATH}/${id} HTTP/1.1`, ...head, '', '{}'].join('\r\n');
        const raw = await rawExchange(t, Number(new URL(url).port), request);
        assert.match(raw, /^HTTP\/1\.1 400 /, id);
        assert.match(raw, /"code":"invalid-url"/, id);
        assert.doesNotMatch(raw, /^x-evil/im);
      }
    },
  );

test(`${RUNS} random bodies and ids are never a fault of the server, and a user is returned as it was sent`, async (users) => {
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(anyBody, anyId, fc.constantFrom('POST', 'PUT', 'PATCH'), async (body, id, method) => {
      const path = method === 'POST' ? PATH : `${PATH}/${encodeURIComponent(id)}`;
      const { status, text, json } = await users.send(method, path, { body });
      assert.ok(status < 500, text);
      if (status >= 400) return;
      const user = json as User;
      assert.equal((await users.get(user.id)).text, text);
      if (method === 'PATCH') return;
      const { name, email, metadata } = user;
      assert.deepEqual({ name, email, ...(metadata && { metadata }) }, JSON.parse(body));
      taken++;
    }),
    { numRuns: RUNS },
  );
  assert.ok(taken > RUNS / 50, `${taken} users were taken`);
  assert.deepEqual(Object.keys(Object.prototype), []);
});

/** Names with a special meaning somewhere. */
const anyName = fc.oneof(
  fc.constantFrom(
    'name',
    'email',
    'metadata',
    '__proto__',
    'constructor',
    'prototype',
    '$ne',
    '$where',
    '_bsontype',
    'toJSON',
    '',
    '\0',
    'id',
    '_id',
  ),
  fc.string({ unit: anyCharacter, maxLength: 5 }),
);
const anyText = fc.oneof(
  fc.constantFrom('a@b', 'x', '$where', '\0', '\r\nx: y'),
  fc.string({ unit: anyCharacter, maxLength: 8 }),
);
const anyValue = fc.oneof(
  anyText,
  fc.constant(null),
  fc.integer(),
  fc.boolean(),
  fc.dictionary(anyName, fc.oneof(anyText, fc.constant(null)), { noNullPrototype: true }),
  fc.array(anyText),
);
/** Bodies as text: users, nearly valid users and anything else, with duplicate names and truncated texts. */
const anyBody: fc.Arbitrary<string> = fc.oneof(
  fc
    .array(fc.tuple(anyName, anyValue), { maxLength: 5 })
    .map(
      (members) =>
        `{${members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`,
    ),
  fc
    .tuple(anyText, anyText, fc.dictionary(anyName, anyText, { noNullPrototype: true }))
    .map(([name, local, metadata]) => JSON.stringify({ name, email: `${local}@b`, metadata })),
  fc.json().filter((text) => text !== ''),
);
const anyId = fc
  .oneof(
    anyName.filter((name) => name !== ''),
    fc.stringMatching(/^[A-Za-z0-9._~-]{1,64}$/),
  )
  .filter((id) => !/\p{Surrogate}/u.test(id));
