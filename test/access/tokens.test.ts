import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { CompactEncrypt, exportSPKI, generateKeyPair, importJWK, type CryptoKey } from 'jose';
import { readConfig } from '../../src/settings/config.ts';
import {
  AUDIENCE,
  inSeconds,
  ISSUER,
  jwtSettings,
  signingPair,
  testIssuer,
  tokenOf,
  tokenOfText,
  type TestIssuer,
} from '../support/access/issuer.ts';
import { keyedServer, type Rows } from '../support/access/keyed.ts';
import { logTo, untilLogged } from '../support/access/log-lines.ts';
import { begun, jsonOf, problemOf, textOf, type Page } from '../support/answers.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { shared, testsWith } from '../support/tests-with.ts';

const ORDERS = Array.from({ length: 20 }, (_, n) => ({
  _id: n,
  tenant: n % 2 ? 'acme' : 'other',
  margin: n,
}));
const RESOURCES: readonly Rows[] = ['orders', 'secrets'].map((name) => ({
  name,
  rows: ORDERS,
  indexes: [['tenant']],
}));
const READ = { resources: ['orders'], actions: ['read', 'stream', 'export'] };
const ACME = { ...READ, where: { orders: { tenant: 'acme' } }, hide: { orders: ['margin'] } };

/** A server with an issuer of tokens for it. */
async function tokenServer(
  t: TestContext,
  more: Record<string, string> = {},
  {
    resources = RESOURCES,
    answer = null,
  }: Partial<{ resources: readonly Rows[]; answer: TestIssuer['answer'] }> = {},
) {
  const pair = await signingPair('one');
  const issuer = await testIssuer(t, [pair]);
  issuer.answer = answer;
  const lines: string[] = [];
  const keys = [{ name: 'plain' }, { name: 'ada', ...READ }];
  const settings = { ...jwtSettings(issuer), ...more };
  const server = await keyedServer(t, 'sqlite', keys, resources, settings, { log: logTo(lines) });
  const ask = (token: string, path = '/orders') =>
    server.get(path, { authorization: `Bearer ${token}`, 'accept-encoding': 'identity' });
  return { server, issuer, pair, ask, lines };
}

/** The status, the words and the challenge of a refusal. */
async function refusal(answer: Response): Promise<string> {
  const { status, detail } = await problemOf(answer);
  return `${status} ${detail} ${answer.headers.get('www-authenticate')}`;
}

const it = testsWith(shared((t) => tokenServer(t)));

it('a token opens what its claim says: rows by value, without hidden fields', async ({
  server,
  issuer,
  pair,
  ask,
}) => {
  const acme = await tokenOf(pair, { sluice: ACME });
  const answer = await ask(acme);
  assert.equal(answer.headers.get('filtered-by-key'), 'true');
  const { data } = (await jsonOf(answer)) as Page;
  assert.equal(data.length, 10);
  for (const row of data) assert.deepEqual(Object.keys(row).sort(), ['id', 'tenant']);
  const whole = await tokenOf(pair, { sluice: READ });
  assert.match(await textOf(ask(whole)), /margin/);
  for (const token of [acme, whole]) {
    assert.equal((await ask(token, '/secrets')).status, 404);
    assert.equal((await ask(token, '/orders/changes')).status, 403);
  }
  assert.equal((await server.as('plain', '/secrets')).status, 200, 'keys are accepted beside tokens');
  assert.equal(issuer.fetches, 1);
});

it('a token without the claim has the rights of JWT_DEFAULT, or none', async (none, t) => {
  const bare = await tokenOf(none.pair);
  for (const path of ['/orders', '/items', '/api/users', '/secrets/1'])
    assert.equal((await none.ask(bare, path)).status, 404, path);
  assert.equal((await none.ask(bare, '/exports')).status, 403);
  assert.doesNotMatch(await textOf(none.ask(bare, '/resources')), /orders|secrets|items|users/);
  const some = await tokenServer(t, {
    JWT_DEFAULT: JSON.stringify(ACME),
    JWT_CLAIM: 'https://x.example/rights',
  });
  const page = (await jsonOf(some.ask(await tokenOf(some.pair)))) as Page;
  assert.equal(page.data.length, 10);
  const named = await tokenOf(some.pair, { 'https://x.example/rights': READ });
  assert.match(await textOf(some.ask(named)), /margin/);
});

it('the error for a claim with a fault names the place of the fault', async ({ pair, ask, lines }) => {
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

it('a token that is not for this server, now, is refused in plain words', async ({ pair, ask }) => {
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
  assert.match(
    await refusal(await ask(`${'a'.repeat(8189)}.b.c`)),
    /^401 .*may have at most 8192 characters/,
  );
  for (const claims of [{ exp: inSeconds(-40) }, { nbf: inSeconds(40) }, { aud: ['others', AUDIENCE] }])
    assert.equal((await ask(await tokenOf(pair, { sluice: READ, ...claims }))).status, 200, 'within 60 s');
});

it('every token whose signature does not prove the issuer gets the same error', async ({
  pair,
  ask,
  issuer,
}) => {
  const good = { iss: ISSUER, aud: AUDIENCE, sub: 'ada', exp: inSeconds(600), sluice: READ };
  const text = JSON.stringify(good);
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const unsigned = `${part({ alg: 'none', kid: 'one' })}.${part(good)}.`;
  const publicKey = (await importJWK(pair.jwk, 'ES256', { extractable: true })) as CryptoKey;
  const hmac = (secret: string) => {
    const input = `${part({ alg: 'HS256', kid: 'one' })}.${part(good)}`;
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
  };
  const own = await signingPair('one');
  const signed = await tokenOf(pair, { sluice: READ });
  const [head = '', , signature = ''] = signed.split('.');
  const encryption = await generateKeyPair('ECDH-ES');
  const encrypted = await new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A128GCM' })
    .encrypt(encryption.publicKey);
  const { jwk } = own;
  const tokens: Record<string, string> = {
    none: unsigned,
    'none with a signature': `${unsigned}AAAA`,
    'NONE in capitals': `${part({ alg: 'NONE' })}.${part(good)}.AAAA`,
    'HS256 with the public key as PEM': hmac(await exportSPKI(publicKey)),
    'HS256 with the public key as JWK': hmac(JSON.stringify(pair.jwk)),
    'HS256 with an empty secret': hmac(''),
    'a key of the same name': await tokenOf(own, { sluice: READ }),
    'a key in the head': await tokenOf(own, { sluice: READ }, { jwk }),
    'the URL of keys in the head': await tokenOf(own, { sluice: READ }, { jku: issuer.url, x5u: issuer.url }),
    'another payload': `${head}.${part({ ...good, sub: 'root' })}.${signature}`,
    'no signature': `${head}.${part(good)}.`,
    'a changed signature': `${signed.slice(0, -4)}AAAA`,
    'an extension that must be understood': await tokenOfText(
      pair,
      text,
      '{"alg":"ES256","kid":"one","crit":["exp"],"exp":1}',
    ),
    'an unencoded payload': await tokenOfText(
      pair,
      text,
      '{"alg":"ES256","kid":"one","crit":["b64"],"b64":false}',
    ),
    'an encrypted token': encrypted,
    'a claim that is given twice': await tokenOfText(pair, text.replace('{', '{"sub":"root",')),
    'rights that are given twice': await tokenOfText(
      pair,
      text.replace('"actions"', '"actions":[],"actions"'),
    ),
    'an algorithm that is given twice': await tokenOfText(
      pair,
      text,
      '{"alg":"none","alg":"ES256","kid":"one"}',
    ),
    'no object': await tokenOfText(pair, '["a"]'),
    'no JSON': await tokenOfText(pair, '{'),
  };
  assert.equal(
    (await ask(await tokenOfText(pair, text))).status,
    200,
    'the texts are refused for their content',
  );
  for (const [name, token] of Object.entries(tokens)) {
    const answer = await refusal(await ask(token));
    assert.match(answer, /^401 The (key or )?token in the Authorization header is not valid\. /, name);
  }
  assert.equal(issuer.fetches, 1, 'nothing was fetched for any of them');
});

it('exports of a token belong to its subject with its rights, not to a key of the same name', async ({
  server,
  pair,
  ask,
}) => {
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

test('a role that a token names has the rights that JWT_ROLES gives it, the first one that counts', async (t) => {
  const JWT_ROLES = JSON.stringify({ acme: ACME, all: { ...READ, resources: ['orders', 'secrets'] } });
  const settings = { JWT_CLAIM: 'realm_access.roles', JWT_ROLES };
  const { pair, ask } = await tokenServer(t, settings);
  const total = async (roles: unknown) => {
    const answer = await ask(await tokenOf(pair, { realm_access: { roles } }), '/orders?count=exact');
    if (answer.status !== 200) return `${answer.status}`;
    const { page, data } = (await answer.json()) as Page;
    return `${page.total} ${'margin' in (data[0] ?? {})}`;
  };
  assert.equal(await total(['other', 'acme']), '10 false');
  assert.equal(await total(['all', 'acme']), '10 false', 'the first of the setting, not of the token');
  assert.equal(await total(['all']), '20 true');
  assert.equal(await total(['toString', 7]), '404');
  assert.equal(await total('all'), '401');
  assert.equal(await total(undefined), '404');
});

test('rights of JWT_ROLES and JWT_DEFAULT are checked at the start', async (t) => {
  const JWT_ROLES = JSON.stringify({ acme: { ...READ, where: { orders: { nothing: 1 } } } });
  await assert.rejects(tokenServer(t, { JWT_ROLES }), /JWT_ROLES, role "acme": /);
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

it('the log names the subject of a token, and an odd one by a hash', async ({ pair, ask, lines }) => {
  for (const [sub, client] of [
    ['auth0|ada@example.com', /"client":"jwt:auth0\|ada@example\.com"/],
    ['a\n"client":"key:root"\u001b[2J', /"client":"jwt:~[0-9a-f]{32}"/],
  ] as const) {
    await textOf(ask(await tokenOf(pair, { sluice: READ, sub })));
    await untilLogged(lines, client);
  }
  assert.doesNotMatch(lines.join(''), /key:root/);
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
  assert.match(faults({ JWT_ISSUER: 'i' }), /JWT_ISSUER also needs JWT_AUDIENCE/);
  const alone = { JWT_ISSUER: 'https://i.example/', JWT_AUDIENCE: 'a' };
  assert.equal(faults(alone), 'on');
  assert.equal(faults({ ...alone, JWT_ISSUER: 'http://127.0.0.1:8080/realms/a' }), 'on');
  for (const issuer of ['i', 'http://i.example', 'http://127.0.0.1.i.example'])
    assert.match(faults({ ...alone, JWT_ISSUER: issuer }), /JWT_ISSUER must be an https URL/);
  assert.match(faults({ ...JWT, JWT_CLAIM: '.' }), /JWT_CLAIM must be the path of a claim/);
  assert.match(faults({ ...JWT, JWT_ROLES: '[]' }), /JWT_ROLES must be an object/);
  assert.match(faults({ ...JWT, JWT_ROLES: '{' }), /JWT_ROLES must be JSON/);
  assert.match(
    faults({ ...JWT, JWT_ROLES: '{"reader":{"actions":["fly"]}}' }),
    /JWT_ROLES, role "reader" \/resources: missing/,
  );
  assert.match(faults({ JWT_DEFAULT: '{}' }), /JWT_DEFAULT also needs[^]*JWT_DEFAULT \/resources: missing/);
  assert.match(faults({ ...JWT, JWT_DEFAULT: '{' }), /JWT_DEFAULT /);
  assert.match(
    faults({ ...JWT, JWT_JWKS_URL: 'file:///etc/keys' }),
    /JWT_JWKS_URL must be a text of the pattern/,
  );
  assert.match(
    faults({ ...JWT, CACHE_CONTROL: 'public' }),
    /CACHE_CONTROL must not have public with JWT_ISSUER/,
  );
});

test('a server starts without its key server, serves keys meanwhile, and tokens get 503', async (t) => {
  const { server, pair, ask } = await tokenServer(t, {}, { answer: { status: 500, text: '' } });
  const answer = await ask(await tokenOf(pair, { sluice: READ }));
  assert.equal(answer.headers.get('retry-after'), '5');
  const { status, code } = await problemOf(answer);
  assert.deepEqual([status, code], [503, 'key-server-unavailable']);
  assert.equal((await server.as('plain', '/orders')).status, 200);
});

test('a running stream of a token is cut at its next batch when the token ends', async (t) => {
  const rows = Array.from({ length: 200 }, (_, n) => ({ _id: n, text: 'x'.repeat(100_000) }));
  const { pair, ask } = await tokenServer(t, {}, { resources: [{ name: 'orders', rows, indexes: [] }] });
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const begin = async () => {
    const token = await tokenOf(pair, { sluice: { ...READ, actions: ['stream'] }, exp: inSeconds(600) });
    return begun(ask(token, '/orders/stream'));
  };
  const whole = await begin();
  const cut = await begin();
  assert.ok((await whole()) > 19_000_000);
  t.mock.timers.setTime(Date.now() + 661_000);
  await assert.rejects(cut(), /terminated/);
});
