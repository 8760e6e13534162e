import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonOf } from '../support/answers.ts';
import { mongodWithUsers } from '../support/store/mongo/mongo.ts';
import { serverOn } from '../support/process/server.ts';

interface Document {
  readonly paths: Readonly<Record<string, unknown>>;
}

test('exports are offered to nobody where the user of MongoDB may not write them', async (t) => {
  const mongod = await mongodWithUsers(t);
  if (!mongod) return;
  const { as, add, root } = mongod;
  await root.db('shop').collection<{ _id: string }>('orders').insertOne({ _id: 'a' });
  await add('reader', { role: 'read', db: 'shop' });
  await add('writer', { role: 'readWrite', db: 'shop' });
  for (const [user, serves] of [
    ['reader', false],
    ['writer', true],
    ['root', true],
  ] as const) {
    const server = await serverOn(t, { MONGODB_URI: as(user), EXPOSE: 'orders' });
    const { resources } = (await jsonOf(server.get('/resources'))) as {
      resources: { name: string; links: Record<string, string> }[];
    };
    assert.deepEqual(
      resources.map(({ name }) => name),
      ['orders'],
      'users are not served',
    );
    assert.equal(resources[0]?.links.exports, serves ? '/exports' : undefined, user);
    const { paths } = (await jsonOf(server.get('/openapi.json'))) as Document;
    assert.equal('/exports' in paths, serves);
    assert.equal('/api/users' in paths, false);
    const listed = await server.get('/exports');
    assert.equal(listed.status, serves ? 200 : 404, await listed.text());
    const preferred = await server.get('/orders/stream', { prefer: 'respond-async' });
    assert.equal(preferred.status, serves ? 202 : 200);
    await preferred.text();
    assert.equal((await server.get('/metrics')).status, 200);
    assert.equal((await server.get('/readyz')).status, 200);
    await server.close();
  }
});
