import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config.ts';
import { AUDIENCE, inSeconds, ISSUER, tokenOf } from '../support/access/issuer.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { ACME, READ, refusal, tokenServer } from '../support/access/tokened.ts';

test('a token opens what its claim says: rows by value, without hidden fields', async (t) => {
  const { server, issuer, pair, ask } = await tokenServer(t);
  const acme = await tokenOf(pair, { sluice: ACME });
  const answer = await ask(acme);
  assert.equal(answer.headers.get('filtered-by-key'), 'true');
  const { data } = (await answer.json()) as { data: Record<string, unknown>[] };
  assert.equal(data.length, 10);
  for (const row of data) assert.deepEqual(Object.keys(row).sort(), ['id', 'tenant']);
  const whole = await tokenOf(pair, { sluice: READ });
  assert.match(await (await ask(whole)).text(), /margin/);
  for (const token of [acme, whole]) {
    assert.equal((await ask(token, '/secrets')).status, 404);
    assert.equal((await ask(token, '/orders/changes')).status, 403);
  }
  assert.equal((await server.as('plain', '/secrets')).status, 200, 'keys are accepted beside tokens');
  assert.equal(issuer.fetches, 1);
});

test('a token without the claim has the rights of JWT_DEFAULT, or none', async (t) => {
  const none = await tokenServer(t);
  const bare = await tokenOf(none.pair);
  for (const path of ['/orders', '/items', '/api/users', '/secrets/1'])
    assert.equal((await none.ask(bare, path)).status, 404, path);
  assert.equal((await none.ask(bare, '/exports')).status, 403);
  assert.doesNotMatch(await (await none.ask(bare, '/resources')).text(), /orders|secrets|items|users/);
  const some = await tokenServer(t, {
    JWT_DEFAULT: JSON.stringify(ACME),
    JWT_CLAIM: 'https://x.example/rights',
  });
  const page = (await (await some.ask(await tokenOf(some.pair))).json()) as { data: unknown[] };
  assert.equal(page.data.length, 10);
  const named = await tokenOf(some.pair, { 'https://x.example/rights': READ });
  assert.match(await (await some.ask(named)).text(), /margin/);
});

test('the error for a claim with a fault names the place of the fault', async (t) => {
  const { pair, ask, lines } = await tokenServer(t);
  const faulty: readonly (readonly [unknown, RegExp])[] = [
    [{ actions: ['read'] }, /\/resources: missing/],
    [{ resources: ['orders'] }, /\/actions: missing/],
    [{ ...READ, resources: ['order'] }, /there is no resource/],
    [{ ...READ, actions: ['write'] }, /\/actions\/0: expected one of/],
    [{ ...READ, more: 1 }, /\/more: unknown field/],
    [{ ...READ, name: 'root' }, /\/name: unknown field/],
    [{ ...READ, where: { orders: { tenant: { $ne: 'acme' } } } }, /claim sluice has faults/],
    [{ ...READ, where: { secrets: { tenant: 'acme' } } }, /not among the resources/],
    [{ ...READ, where: { orders: { margin: 1 } } }, /claim sluice has faults: orders/],
    [{ ...READ, hide: { orders: ['id'] } }, /claim sluice has faults/],
    [{ ...READ, expires: 'soon' }, /\/expires: the date/],
    [null, /claim sluice has faults/],
    ['read', /claim sluice has faults/],
    [[READ], /claim sluice has faults/],
  ];
  for (const [claim, words] of faulty) {
    const message = await refusal(await ask(await tokenOf(pair, { sluice: claim })));
    assert.match(message, /^401 /, JSON.stringify(claim));
    assert.match(message, words, JSON.stringify(claim));
    assert.doesNotMatch(message, /secrets, items/, 'no list of resources');
    assert.doesNotMatch(message, /index|createIndex/, 'nothing that only the operator knows');
  }
  assert.match(lines.join(''), /orders: no index answers where; this one would: /, 'the log has it');
});

test('a token that is not for this server, now, is refused in plain words', async (t) => {
  const { pair, ask } = await tokenServer(t);
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ aud: 'others' }, /here and now: unexpected "aud" .*error="invalid_token", error_description=".*'aud'/],
    [{ aud: undefined }, /missing required "aud"/],
    [{ iss: 'https://evil.example/' }, /unexpected "iss"/],
    [{ iss: ISSUER.slice(0, -1) }, /unexpected "iss"/],
    [{ iss: undefined }, /missing required "iss"/],
    [{ exp: inSeconds(-70) }, /"exp" claim timestamp check failed/],
    [{ exp: undefined }, /missing required "exp"/],
    [{ exp: String(inSeconds(600)) }, /"exp" claim must be a number/],
    [{ nbf: inSeconds(90) }, /"nbf" claim timestamp check failed/],
    [{ nbf: 'now' }, /"nbf" claim must be a number/],
    [{ sub: undefined }, /missing required "sub"/],
    [{ sub: '' }, /The token has no claim sub/],
    [{ sub: 7 }, /The token has no claim sub/],
  ];
  for (const [claims, words] of refused) {
    const message = await refusal(await ask(await tokenOf(pair, { sluice: READ, ...claims })));
    assert.match(message, words, JSON.stringify(claims));
    assert.match(message, /^401 .*Bearer realm="sluice", error="invalid_token"/);
  }
  for (const claims of [{ exp: inSeconds(-40) }, { nbf: inSeconds(40) }, { aud: ['others', AUDIENCE] }])
    assert.equal((await ask(await tokenOf(pair, { sluice: READ, ...claims }))).status, 200, 'within 60 s');
});

test('exports of a token belong to its subject with its rights, not to a key of the same name', async (t) => {
  const { server, pair, ask } = await tokenServer(t);
  const [ada, again, less, bob] = await Promise.all([
    tokenOf(pair, { sluice: READ }),
    tokenOf(pair, { sluice: READ, exp: inSeconds(900) }),
    tokenOf(pair, { sluice: ACME }),
    tokenOf(pair, { sluice: READ, sub: 'bob' }),
  ]);
  const headers = { authorization: `Bearer ${ada}` };
  const { id } = await order(server.url, { resource: 'orders' }, headers);
  await awaited(server.url, id, ({ state }) => state === 'complete', headers);
  const statuses = [ada, again, less, bob].map((token) =>
    ask(token, `/exports/${id}`).then(({ status }) => status),
  );
  assert.deepEqual(await Promise.all(statuses), [200, 200, 404, 404]);
  assert.equal((await server.as('ada', `/exports/${id}`)).status, 404);
});

test('requests are counted for each subject, not for each token', async (t) => {
  const { server, pair, ask } = await tokenServer(t, { RATE_LIMIT: '3/h' });
  const left = async (claims: object) => {
    const answer = await ask(await tokenOf(pair, { sluice: READ, ...claims }));
    return answer.headers.get('ratelimit')?.split(';')[1];
  };
  assert.equal(await left({}), 'r=2');
  assert.equal(await left({ exp: inSeconds(700) }), 'r=1');
  assert.equal(await left({ sub: 'bob' }), 'r=2');
  assert.match(
    (await server.as('ada', '/orders')).headers.get('ratelimit') ?? '',
    /r=2/,
    'a key is another client',
  );
  assert.equal(await left({ sub: 'eve', sluice: { ...READ, rate: '1/s' } }), 'r=0');
});

test('the log names the subject of a token, and an odd one by a hash', async (t) => {
  const { pair, ask, lines } = await tokenServer(t);
  await ask(await tokenOf(pair, { sluice: READ, sub: 'auth0|ada@example.com' }));
  await ask(await tokenOf(pair, { sluice: READ, sub: 'a\n"client":"key:root"\u001b[2J' }));
  const clients = lines
    .map((line) => (JSON.parse(line) as { client?: string }).client)
    .filter((one) => one !== undefined);
  assert.equal(clients[0], 'jwt:auth0|ada@example.com');
  assert.match(clients[1] ?? '', /^jwt:~[0-9a-f]{32}$/);
});

test('the settings of tokens belong together, and rights in them are checked', () => {
  const JWT = { JWT_JWKS_URL: 'https://i.example/jwks', JWT_ISSUER: 'i', JWT_AUDIENCE: 'a' };
  const faults = (given: NodeJS.ProcessEnv) => {
    try {
      return readConfig(given).tokens === null ? 'off' : 'on';
    } catch (error) {
      return (error as Error).message;
    }
  };
  assert.equal(faults({}), 'off');
  assert.equal(faults(JWT), 'on');
  assert.equal(faults({ ...JWT, JWT_DEFAULT: JSON.stringify(READ) }), 'on');
  assert.match(faults({ JWT_ISSUER: 'i' }), /JWT_ISSUER also needs JWT_JWKS_URL and JWT_AUDIENCE/);
  assert.match(faults({ JWT_DEFAULT: '{}' }), /JWT_DEFAULT also needs[^]*JWT_DEFAULT \/resources: missing/);
  assert.match(faults({ ...JWT, JWT_DEFAULT: '{' }), /JWT_DEFAULT /);
  assert.match(
    faults({ ...JWT, JWT_JWKS_URL: 'file:///etc/keys' }),
    /JWT_JWKS_URL must be a text of the pattern/,
  );
  assert.match(
    faults({ ...JWT, CACHE_CONTROL: 'public' }),
    /CACHE_CONTROL must not have public with JWT_JWKS_URL/,
  );
});
