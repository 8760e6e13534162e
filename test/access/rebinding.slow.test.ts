import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { chromium } from 'playwright-core';
import { keyedServer } from '../support/access/keyed.ts';
import { chromiumPath } from '../support/process/programs.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';

const USER = JSON.stringify({ name: 'Eve', email: 'eve@x.example' });

/** What a page of another site tries, each with the status that it sees: 0 where the browser keeps the answer from it. */
const ATTACK = `(async (origin, other) => {
  const seen = {};
  const ask = async (name, url, options = {}) => {
    seen[name] = await fetch(url, options).then((answer) => answer.status, () => 0);
  };
  const user = ${JSON.stringify(USER)};
  await ask('rebound: rows', origin + '/items/stream');
  await ask('rebound: page', origin + '/');
  await ask('rebound: health', origin + '/readyz');
  await ask('rebound: user', origin + '/api/users', { method: 'POST', body: user, headers: { 'content-type': 'application/json' } });
  await ask('other origin: rows', other + '/items');
  await ask('other origin: user', other + '/api/users', { method: 'POST', body: user, headers: { 'content-type': 'application/json' } });
  for (const [name, body] of Object.entries({ text: user, untyped: new Blob([user]), form: new URLSearchParams({ a: user }) }))
    await ask('unread ' + name, other + '/api/users', { method: 'POST', mode: 'no-cors', body });
  await ask('unread removal', other + '/api/users/a', { method: 'DELETE', mode: 'no-cors' });
  return seen;
})`;

/** The statuses that a page of http://evil.example sees, while that name resolves to the address of the server. */
async function attacked(t: TestContext, { url }: Pick<TestServer, 'url'>) {
  const executablePath = chromiumPath(t);
  if (executablePath === null) return null;
  const args = ['--no-sandbox', '--host-resolver-rules=MAP evil.example 127.0.0.1'];
  const browser = await chromium.launch({ executablePath, args });
  t.after(() => browser.close());
  const page = await browser.newPage();
  const rebound = `http://evil.example:${new URL(url).port}`;
  // A document of the server itself, whatever it answers: Chromium keeps a made one from addresses of the machine.
  await page.goto(`${rebound}/livez`);
  return page.evaluate<Record<string, number>>(
    `${ATTACK}(${JSON.stringify(rebound)}, ${JSON.stringify(url)})`,
  );
}

const BY_OTHER_ORIGIN = { 'other origin: rows': 0, 'other origin: user': 0, 'unread removal': 0 };

test('a page of another site gets and writes nothing through a browser, without keys', async (t) => {
  const server = await serverOn(t, {});
  await server.insert([{ _id: 'row', category: 'x', price: 1 }]);
  const seen = await attacked(t, server);
  if (!seen) return;
  const rebound = Object.entries(seen).filter(([name]) => name.startsWith('rebound'));
  assert.deepEqual(new Set(rebound.map(([, status]) => status)), new Set([421]), JSON.stringify(seen));
  for (const [name, status] of Object.entries(BY_OTHER_ORIGIN)) assert.equal(seen[name], status, name);
  const users = (await (await server.get('/api/users')).json()) as { readonly data: readonly unknown[] };
  assert.deepEqual(users.data, []);
});

test('a page of another site gets and writes nothing through a browser, with keys', async (t) => {
  const server = await keyedServer(t, 'sqlite', [{ name: 'alice' }], []);
  const seen = await attacked(t, server);
  if (!seen) return;
  for (const name of ['rows', 'user']) assert.equal(seen[`rebound: ${name}`], 401, name);
  for (const [name, status] of Object.entries(BY_OTHER_ORIGIN)) assert.equal(seen[name], status, name);
  const users = (await (await server.as('alice', '/api/users')).json()) as {
    readonly data: readonly unknown[];
  };
  assert.deepEqual(users.data, []);
});
