import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { User } from '../../src/users/user.ts';
import { childServer } from '../support/process/child-server.ts';
import { temporaryFolder } from '../support/directory.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { serverOn, testServer } from '../support/process/server.ts';
import { PATH, usersAt, type Answer, type Users } from '../support/users/users.ts';

/** Clients of one server, or of two that share a store. */
const SERVERS: Record<string, (t: TestContext) => Promise<Users[] | null>> = {
  'one server on sqlite': async (t) => {
    return [usersAt((await testServer(t, 'sqlite', 'uws')).url)];
  },
  'two processes on one sqlite file': async (t) => {
    const settings = { DATA_DIR: await temporaryFolder(t), MONGODB_URI: '' };
    const servers = [await childServer(t, settings), await childServer(t, settings)];
    return servers.map(({ url }) => usersAt(url.origin));
  },
  'two servers on one mongodb': async (t) => {
    const uri = await testMongo(t);
    if (uri === null) return null;
    const servers = await Promise.all([0, 1].map(() => serverOn(t, { MONGODB_URI: uri })));
    return servers.map(({ url }) => usersAt(url));
  },
};

const WRITERS = 100;
const all = <T>(work: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: WRITERS }, (_, n) => work(n)));
const body = (n: number) => ({ name: `writer ${n}`, email: `${n}@example.org`, metadata: { n: String(n) } });
const count = (answers: readonly Answer[]) => {
  const statuses: Record<number, number> = {};
  for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1;
  return statuses;
};

for (const [name, open] of Object.entries(SERVERS))
  test(`users on ${name}`, async (t) => {
    const clients = await open(t);
    if (!clients) return;
    /** Returns the client of the n-th writer. */
    const client = (n: number): Users => clients[n % clients.length] ?? fail();

    await t.test(
      `of ${WRITERS} writers with the same version exactly one succeeds, whatever the method`,
      async () => {
        const send = (n: number, method: string, etag: string) =>
          client(n).send(method, `${PATH}/a`, {
            ...(method !== 'DELETE' && { body: body(n) }),
            headers: { 'if-match': etag },
          });
        for (const methods of [
          ['PUT'],
          ['PATCH'],
          ['PUT', 'PATCH'],
          ['DELETE'],
          ['PUT', 'PATCH', 'DELETE'],
        ]) {
          const { etag }: { etag: string } = await client(0).put('a', body(-1));
          const answers: Answer[] = await all((n) => send(n, methods[n % methods.length] ?? '', etag));
          const ok = answers.filter(({ status }) => status === 200);
          assert.equal(ok.length, 1, `${methods.join()}: ${JSON.stringify(count(answers))}`);
          const removed = (ok[0]?.json as { deleted?: true }).deleted === true;
          // After a removal there is no user: PUT fails its condition (412), and the others need a user (404).
          for (const { status } of answers) assert.ok([200, 412, ...(removed ? [404] : [])].includes(status));
          const now = await client(0).get('a');
          assert.equal(removed ? now.status : now.text, removed ? 404 : ok[0]?.text);
        }
      },
    );

    await t.test(`of ${WRITERS} conditional creates of one user exactly one succeeds`, async () => {
      const answers = await all((n) =>
        client(n).send('PUT', `${PATH}/new`, {
          body: body(n),
          headers: { 'if-none-match': '*' },
        }),
      );
      assert.deepEqual(count(answers), { 201: 1, 412: WRITERS - 1 });
      const winner = answers.find(({ status }) => status === 201);
      assert.equal((await client(0).get('new')).text, winner?.text);
    });

    await t.test(
      'without a condition the last write wins completely, and patches of other fields are all kept',
      async () => {
        const send = (n: number, method: string, id: string, sent: unknown) =>
          client(n).send(method, `${PATH}/${id}`, { body: sent });
        const answers = await all((n) => send(n, 'PUT', 'last', body(n)));
        assert.equal(count(answers)[201], 1, 'one created');
        for (const [n, { json }] of answers.entries())
          assert.deepEqual(stated(json), body(n), 'each write has its own version');
        const { json } = await client(0).get('last');
        assert.ok(answers.some((answer) => JSON.stringify(answer.json) === JSON.stringify(json)));
        const times = new Set(answers.map((answer) => (answer.json as User).updatedAt));
        assert.equal(times.size, WRITERS, 'each version has its own time');

        await all((n) => send(n, 'PATCH', 'last', { metadata: { n: null, [`k${n % 40}`]: String(n) } }));
        const { metadata } = (await client(0).get('last')).json as User;
        assert.equal(Object.keys(metadata ?? {}).length, 40);
      },
    );
  });

function fail(): never {
  throw new TypeError('no server');
}

function stated(json: unknown): unknown {
  const { name, email, metadata } = json as User;
  return { name, email, metadata };
}
