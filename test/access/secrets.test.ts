import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { Route } from '../../src/http/route.ts';
import { jwtSettings, signingPair, testIssuer, tokenOf } from '../support/access/issuer.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { logTo } from '../support/access/log-lines.ts';

test('no key, token or hash of one is in the log, the metrics or any answer', async (t) => {
  const [pair, other] = await Promise.all([signingPair('one'), signingPair('one')]);
  const issuer = await testIssuer(t, [pair]);
  const lines: string[] = [];
  let routes: readonly Route[] = [];
  const server = await keyedServer(
    t,
    'sqlite',
    [
      { name: 'all' },
      { name: 'less', actions: ['stream'] },
      { name: 'ended', expires: '2020-01-01T00:00:00Z' },
    ],
    [{ name: 'orders', rows: [{ _id: 1, tenant: 'acme' }], indexes: [['tenant']] }],
    { ...jwtSettings(issuer), LOG_LEVEL: 'trace' },
    { log: logTo(lines, 'trace'), tap: (serve, all) => ((routes = all()), serve) },
  );
  const rights = { resources: ['orders'], actions: ['read', 'stream', 'export'] };
  const known = [
    ...['secret-of-all', 'secret-of-less'],
    await tokenOf(pair, { sluice: rights }),
    await tokenOf(pair, { sluice: { ...rights, where: { orders: { tenant: 'acme' } } } }),
  ];
  const refused = [
    ...['secret-of-ended', 'secret-of-unknown'],
    await tokenOf(pair, { sluice: { resources: ['nothing'], actions: [] } }),
    await tokenOf(pair, { sluice: rights, exp: 1 }),
    await tokenOf(other, { sluice: rights }),
  ];
  const answers: string[] = [];
  const statuses = new Set<number>();
  const ends = routes.filter(({ path }) => !/^\/(docs|explorer|\{?$)/.test(path));
  // A secret is refused before its route matters.
  const some = ends.filter(({ access }) => access === 'keyed').slice(0, 5);
  for (const secret of [...known, ...refused])
    for (const { method, path } of known.includes(secret) ? ends : some) {
      const answer = await fetch(server.url + path.replaceAll(/\{\w+\}/g, '1'), {
        method,
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        ...(method !== 'GET' && method !== 'DELETE' && { body: '{"name":1}' }),
        signal: AbortSignal.timeout(20_000),
      });
      statuses.add(answer.status);
      answers.push(JSON.stringify([...answer.headers]) + (await answer.text()));
    }
  for (const status of [200, 401, 403, 404]) assert.ok(statuses.has(status), String(status));
  await server.close();
  const all = `${lines.join('')}${answers.join('')}`;
  assert.match(all, /sluice_requests/, 'the metrics are among the answers');
  assert.match(lines.join(''), /"audit":"refused"/);
  for (const secret of [...known, ...refused]) {
    const digest = createHash('sha256').update(secret).digest();
    const forms = [secret, digest.toString('hex'), digest.toString('base64url'), digest.toString('base64')];
    const [, payload = secret, signature = secret] = secret.split('.');
    for (const form of [...forms, payload, signature])
      assert.ok(!all.includes(form), `${secret.slice(0, 20)} ${form.slice(0, 20)}`);
  }
});
