import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { User } from '../../src/users/user.ts';
import { COMBINATIONS, testServer } from '../support/process/server.ts';
import { codeOf, PATH, usersAt, type Answer, type Users } from '../support/users/users.ts';
import { shared, testsWith } from '../support/tests-with.ts';

const ADA = { name: 'Ada', email: 'ada@example.org' };
const TEXTS = { team: 'red', desk: '7' };

/** The effect of a method on a user: the state before (null: none), the request, the answer, and the state after. */
interface Case {
  readonly says: string;
  readonly before: Record<string, unknown> | null;
  readonly request: readonly [method: string, body?: unknown, headers?: Record<string, string>];
  readonly status: number;
  /** The later answer to GET, without id and times. `same`: unchanged byte for byte. null: 404. */
  readonly after: Record<string, unknown> | 'same' | null;
}

const MERGE = { 'content-type': 'application/merge-patch+json' };

const SEMANTICS: readonly Case[] = [
  { says: 'PUT creates', before: null, request: ['PUT', ADA], status: 201, after: ADA },
  {
    says: 'PUT replaces: stored metadata that the body leaves out is gone',
    before: { ...ADA, metadata: TEXTS },
    request: ['PUT', { name: 'Bob', email: 'b@b' }],
    status: 200,
    after: { name: 'Bob', email: 'b@b' },
  },
  {
    says: 'PUT replaces metadata as a whole',
    before: { ...ADA, metadata: TEXTS },
    request: ['PUT', { ...ADA, metadata: { desk: '8' } }],
    status: 200,
    after: { ...ADA, metadata: { desk: '8' } },
  },
  {
    says: 'PUT without a name changes nothing',
    before: { ...ADA, metadata: TEXTS },
    request: ['PUT', { email: 'b@b' }],
    status: 422,
    after: 'same',
  },
  {
    says: 'PUT without an e-mail address creates nothing',
    before: null,
    request: ['PUT', { name: 'Bob' }],
    status: 422,
    after: null,
  },
  {
    says: 'PATCH changes what it names and keeps the rest, stored metadata too',
    before: { ...ADA, metadata: TEXTS },
    request: ['PATCH', { name: 'Bob' }],
    status: 200,
    after: { ...ADA, name: 'Bob', metadata: TEXTS },
  },
  {
    says: 'PATCH takes application/merge-patch+json, too',
    before: ADA,
    request: ['PATCH', { email: 'b@b' }, MERGE],
    status: 200,
    after: { ...ADA, email: 'b@b' },
  },
  {
    says: 'PATCH merges metadata: sets, replaces, removes with null',
    before: { ...ADA, metadata: TEXTS },
    request: ['PATCH', { metadata: { desk: null, team: 'blue', floor: '2' } }, MERGE],
    status: 200,
    after: { ...ADA, metadata: { team: 'blue', floor: '2' } },
  },
  {
    says: 'PATCH creates metadata where there is none',
    before: ADA,
    request: ['PATCH', { metadata: { a: 'b', c: null } }],
    status: 200,
    after: { ...ADA, metadata: { a: 'b' } },
  },
  {
    says: 'PATCH removes metadata with null',
    before: { ...ADA, metadata: TEXTS },
    request: ['PATCH', { metadata: null }],
    status: 200,
    after: ADA,
  },
  { says: 'PATCH {} changes nothing', before: ADA, request: ['PATCH', {}], status: 200, after: 'same' },
  {
    says: 'PATCH that sets what is there changes nothing',
    before: { ...ADA, metadata: TEXTS },
    request: ['PATCH', { name: 'Ada', metadata: { team: 'red', none: null } }],
    status: 200,
    after: 'same',
  },
  {
    says: 'PATCH with null for the name is refused',
    before: ADA,
    request: ['PATCH', { name: null, email: 'b@b' }],
    status: 422,
    after: 'same',
  },
  {
    says: 'PATCH of a missing user',
    before: null,
    request: ['PATCH', { name: 'Bob' }],
    status: 404,
    after: null,
  },
  { says: 'DELETE removes', before: ADA, request: ['DELETE'], status: 200, after: null },
  { says: 'DELETE of a missing user', before: null, request: ['DELETE'], status: 404, after: null },
  { says: 'DELETE ignores a body', before: ADA, request: ['DELETE', 'no JSON'], status: 200, after: null },
  {
    says: 'DELETE is brief where that is preferred',
    before: ADA,
    request: ['DELETE', undefined, { prefer: 'wait=5, return=minimal' }],
    status: 204,
    after: null,
  },
  { says: 'GET is safe', before: { ...ADA, metadata: TEXTS }, request: ['GET'], status: 200, after: 'same' },
  { says: 'HEAD is safe', before: ADA, request: ['HEAD'], status: 200, after: 'same' },
  { says: 'GET of a missing user', before: null, request: ['GET'], status: 404, after: null },
];

/** A user without the fields that the server adds. */
function stated({ name, email, metadata }: User): Record<string, unknown> {
  return { name, email, ...(metadata && { metadata }) };
}

for (const [store, engine] of COMBINATIONS) {
  const server = shared((t) => testServer(t, store, engine));
  const opened = async (t: TestContext) => {
    const one = await server(t);
    return one && usersAt(one.url);
  };
  const test = testsWith(opened, `${store} behind ${engine}`);

  test('each method changes or reads a user as documented', async (users) => {
    for (const [n, { says, before, request, status, after }] of SEMANTICS.entries()) {
      const id = `case-${n}`;
      if (before) await users.put(id, before);
      const was = await users.get(id);
      const [method, body, headers = {}] = request;
      const answer = await users.send(method, `${PATH}/${id}`, { body, headers });
      assert.equal(answer.status, status, `${says}: ${answer.text}`);
      const is = await users.get(id);
      if (after === null) assert.equal(is.status, 404, says);
      else if (after === 'same') assert.equal(is.text, was.text, says);
      else assert.deepEqual(stated(is.json as User), after, says);
      checkWrite(says, method, answer, was, is);
    }
  });

  test('POST creates users with ids of the server, in order of creation', async (users) => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      const answer: Answer = await users.send('POST', PATH, {
        body: { ...ADA, metadata: { n: String(n) } },
      });
      const { id, ...rest } = answer.json as User;
      ids.push(id);
      assert.equal(answer.status, 201);
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      assert.equal(answer.headers.get('location'), `${PATH}/${id}`);
      assert.deepEqual(Object.keys(rest), ['name', 'email', 'metadata', 'createdAt', 'updatedAt']);
      assert.equal(rest.createdAt, rest.updatedAt);
      const got: Answer = await users.get(id);
      assert.deepEqual([got.text, got.headers.get('etag')], [answer.text, answer.headers.get('etag')]);
    }
    const listed = await idsOf(users);
    assert.deepEqual(
      listed.filter((id) => ids.includes(id)),
      ids,
      'two users may have one e-mail address, and the list is in order',
    );
  });

  test('a repeated PUT changes only updatedAt, createdAt stays and updatedAt grows with each change', async (users) => {
    const versions = [await users.put('a', ADA)];
    for (let n = 0; n < 20; n++) versions.push(await users.put('a', ADA));
    for (const [n, version] of versions.entries()) {
      const before = versions[n - 1];
      assert.deepEqual(stated(version), ADA);
      assert.equal(version.createdAt, versions[0]?.createdAt);
      assert.ok(!before || before.updatedAt < version.updatedAt, 'a later one for each version');
    }
    assert.equal(new Set(versions.map(({ etag }) => etag)).size, versions.length);
  });

  test('a user is revalidated by its ETag, and a large one has an ETag for each coding', async (users) => {
    const texts = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`k${n}`, 'x'.repeat(500)]));
    const { etag } = await users.put('large', { ...ADA, metadata: texts });
    assert.match(etag, /^"[0-9a-f]{16}(-br|-gzip)?"$/);
    for (const coding of ['identity', 'gzip', 'br']) {
      const headers = { 'accept-encoding': coding };
      const got: Answer = await users.send('GET', `${PATH}/large`, { headers });
      const tag = got.headers.get('etag') ?? '';
      assert.equal(tag.includes(`-${coding}`), coding !== 'identity', tag);
      assert.equal(got.headers.get('cache-control'), 'private, no-cache');
      const again = await users.send('GET', `${PATH}/large`, {
        headers: { ...headers, 'if-none-match': tag },
      });
      assert.deepEqual([again.status, again.text], [304, '']);
      const patched = await users.send('PATCH', `${PATH}/large`, {
        body: { name: coding },
        headers: { ...headers, 'if-match': tag },
      });
      assert.equal(patched.status, 200, 'the ETag of a compressed answer matches If-Match');
    }
  });

  test('OPTIONS and Allow list the methods', async (users) => {
    const list = await users.send('OPTIONS', PATH);
    assert.deepEqual(
      [list.status, list.headers.get('allow'), list.headers.get('accept-post')],
      [204, 'GET, POST, HEAD, OPTIONS', 'application/json'],
    );
    const one = await users.send('OPTIONS', `${PATH}/a`);
    assert.deepEqual(
      [one.status, one.headers.get('allow'), one.headers.get('accept-patch')],
      [204, 'GET, PUT, PATCH, DELETE, HEAD, OPTIONS', 'application/json, application/merge-patch+json'],
    );
    for (const [method, path] of [
      ['DELETE', PATH],
      ['PUT', PATH],
      ['POST', `${PATH}/a`],
    ] as const) {
      const refused = await users.send(method, path, { body: ADA });
      assert.deepEqual([refused.status, codeOf(refused)], [405, 'method-not-allowed']);
      assert.match(refused.headers.get('allow') ?? '', /GET/);
    }
  });

  test('the list walked in every style has all users in order, each as GET shows it', async (users) => {
    const ids = Array.from({ length: 23 }, (_, n) => `${'aZ~_.'[n % 5] ?? ''}x${(n * 31) % 101}`);
    await Promise.all(ids.map((id) => users.put(id, { ...ADA, metadata: { id } })));
    const listed = await idsOf(users);
    const { text } = await users.send('GET', `${PATH}?limit=1000`);
    assert.deepEqual(
      listed,
      listed.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    );
    for (const style of ['cursor', 'offset', 'page'] as const)
      for (const limit of [7, listed.length, 1000])
        assert.deepEqual(await walk(users, style, limit), listed, `${style} ${limit}`);
    for (const id of ids) assert.ok(text.includes((await users.get(id)).text), id);
    const link = (await users.send('GET', `${PATH}?offset=10&limit=10`)).headers.get('link');
    assert.match(link ?? '', /<\/api\/users\?limit=10&offset=20>; rel="next"/);
  });
}

/** The ids of all users, as one list has them. */
async function idsOf(users: Users): Promise<string[]> {
  const { data } = (await users.send('GET', `${PATH}?limit=1000`)).json as { data: User[] };
  return data.map(({ id }) => id);
}

/** Asserts what holds for every answer to a write. */
function checkWrite(says: string, method: string, answer: Answer, was: Answer, is: Answer): void {
  const reads = method === 'GET' || method === 'HEAD';
  if (!reads) assert.equal(answer.headers.get('cache-control'), 'no-store', says);
  if (answer.status >= 400) return;
  if (method === 'DELETE') {
    const minimal = answer.status === 204;
    assert.equal(answer.headers.get('preference-applied'), minimal ? 'return=minimal' : null);
    const { id } = was.json as User;
    assert.deepEqual(answer.json, minimal ? undefined : { id, deleted: true });
    return;
  }
  assert.equal(answer.headers.get('etag'), is.headers.get('etag'), says);
  if (method !== 'HEAD') assert.equal(answer.text, is.text, says);
  if (answer.status === 201) assert.equal(answer.headers.get('location'), `${PATH}/${(is.json as User).id}`);
  if (was.status !== 200) return;
  const before = was.json as User;
  const after = is.json as User;
  assert.equal(after.createdAt, before.createdAt, says);
  if (was.text !== is.text) assert.ok(after.updatedAt > before.updatedAt, says);
}

async function walk(users: Users, style: 'cursor' | 'offset' | 'page', limit: number): Promise<string[]> {
  const ids: string[] = [];
  let position = { offset: '&offset=0', page: '&page=1', cursor: '' }[style];
  for (let number = 1; ; number++) {
    const answer = await users.send('GET', `${PATH}?limit=${limit}${position}`);
    const { data, page } = answer.json as {
      data: User[];
      page: { hasMore: boolean; nextCursor: string };
    };
    ids.push(...data.map(({ id }) => id));
    if (!page.hasMore) return ids;
    assert.equal(data.length, limit);
    const next = { offset: number * limit, page: number + 1, cursor: page.nextCursor };
    position = `&${style}=${next[style]}`;
  }
}
