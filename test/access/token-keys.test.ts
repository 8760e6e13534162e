import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { sha256 } from '../../src/access/keys.ts';
import { TokenCheck } from '../../src/access/token-check.ts';
import { Tokens, type TokensOptions } from '../../src/access/tokens.ts';
import { AppError } from '../../src/base/errors.ts';
import { listening } from '../support/ports.ts';
import { logTo } from '../support/access/log-lines.ts';
import {
  AUDIENCE,
  inSeconds,
  ISSUER,
  signingPair,
  testIssuer,
  tokenOf,
  type SigningPair,
  type TestIssuer,
} from '../support/access/issuer.ts';

const READ = { resources: ['orders'], actions: ['read', 'stream'] };
const REFRESH_MS = 600_000;

interface Setting {
  readonly pairs: readonly SigningPair[];
  readonly answer?: TestIssuer['answer'];
  readonly faultsOf?: TokensOptions['faultsOf'];
}

/** Tokens whose clock stands still until `pass` moves it. */
async function tokensOf(t: TestContext, { pairs, answer = null, faultsOf }: Setting) {
  const issuer = await testIssuer(t, pairs);
  issuer.answer = answer;
  t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.now() });
  const lines: string[] = [];
  const settings = {
    url: issuer.url,
    issuer: ISSUER,
    audience: AUDIENCE,
    claim: 'sluice',
    roles: new Map(),
    fallback: null,
  };
  const check = new TokenCheck(settings, logTo(lines));
  await check.refresh();
  t.after(() => check.close());
  const tokens = new Tokens({ settings, check, faultsOf: faultsOf ?? (() => Promise.resolve([])) });
  const ask = (token: string) => tokens.authenticate(token, sha256(token));
  const code = async (token: string) => {
    try {
      return (await ask(token)).name;
    } catch (error) {
      return error instanceof AppError ? error.code : error;
    }
  };
  return { issuer, lines, check, ask, code, pass: (ms: number) => t.mock.timers.tick(ms) };
}

test('a storm of tokens with unknown keys causes one fetch in 30 s, also while the key server is away', async (t) => {
  const [known, unknown] = await Promise.all([signingPair('one'), signingPair('two')]);
  const { issuer, pass, code } = await tokensOf(t, { pairs: [known] });
  assert.equal(issuer.fetches, 1);
  const storm = async () => {
    const tokens = await Promise.all(
      Array.from({ length: 20 }, (_, n) => tokenOf(unknown, { sluice: READ }, { kid: `unknown-${n}` })),
    );
    assert.deepEqual(new Set(await Promise.all(tokens.map(code))), new Set(['unauthorized']));
  };
  await storm();
  assert.equal(issuer.fetches, 1, 'the keys were fetched a moment ago');
  for (const [n, answer] of [null, { status: 500, text: '' }, { status: 200, text: '{' }].entries()) {
    issuer.answer = answer;
    pass(30_000);
    await storm();
    await storm();
    assert.equal(issuer.fetches, n + 2, 'all of them share one fetch');
    pass(29_000);
    await storm();
    assert.equal(issuer.fetches, n + 2);
  }
});

test('a new key is fetched when its first token comes, and a withdrawn one is no longer accepted', async (t) => {
  const [old, next] = await Promise.all([signingPair('old', 'RS256'), signingPair('next', 'EdDSA')]);
  const { issuer, pass, code, ask } = await tokensOf(t, { pairs: [old] });
  const [before, after] = await Promise.all([old, next].map((pair) => tokenOf(pair, { sluice: READ })));
  assert.ok(before !== undefined && after !== undefined);
  assert.equal(await code(before), 'ada');
  issuer.keys = [next.jwk];
  assert.equal(await code(after), 'unauthorized');
  pass(30_000);
  assert.ok(!(ask(before) instanceof Promise), 'remembered until the keys are fetched');
  assert.equal(await code(after), 'ada');
  assert.equal(issuer.fetches, 2);
  assert.equal(await code(before), 'unauthorized');
});

test('a withdrawn key is no longer accepted after 10 minutes, although no token asked for another', async (t) => {
  const pair = await signingPair('old');
  const { issuer, check, pass, code } = await tokensOf(t, { pairs: [pair] });
  const token = await tokenOf(pair, { sluice: READ, exp: inSeconds(6000) });
  assert.equal(await code(token), 'ada');
  issuer.keys = [];
  const { fetchedAt } = check;
  pass(REFRESH_MS);
  while (check.fetchedAt === fetchedAt) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(await code(token), 'unauthorized');
});

test('known keys stay valid while the key server is away or answers nonsense', async (t) => {
  const known = await signingPair('one');
  const { issuer, pass, lines, code } = await tokensOf(t, { pairs: [known] });
  const nonsense = [
    { status: 500, text: '' },
    { status: 302, text: '' },
    { status: 200, text: '{' },
    { status: 200, text: '{"keys":{}}' },
  ];
  for (const [n, answer] of nonsense.entries()) {
    issuer.answer = answer;
    pass(REFRESH_MS);
    while (lines.length <= n) await new Promise((resolve) => setImmediate(resolve));
    assert.match(lines.at(-1) ?? '', /JWT_JWKS_URL gave no keys: the known keys stay valid/);
    assert.equal(await code(await tokenOf(known, { sluice: READ, sub: `bob-${n}` })), `bob-${n}`);
  }
  assert.equal(issuer.fetches, nonsense.length + 1);
});

test('without any keys tokens get 503 until the key server is there', async (t) => {
  const pair = await signingPair('one');
  const { issuer, pass, lines, code } = await tokensOf(t, {
    pairs: [pair],
    answer: { status: 503, text: '' },
  });
  assert.match(lines.join(), /JWT_JWKS_URL gave no keys: no token can be verified/);
  const token = await tokenOf(pair, { sluice: READ });
  assert.equal(await code(token), 'key-server-unavailable');
  assert.equal(issuer.fetches, 1, 'not at every request');
  issuer.answer = null;
  pass(5_000);
  assert.equal(await code(token), 'ada');
});

test('a verified token costs a look-up until it ends, and requests with a new one share its verification', async (t) => {
  const pair = await signingPair('one');
  let checked = 0;
  const { pass, ask, code } = await tokensOf(t, {
    pairs: [pair],
    faultsOf: () => Promise.resolve((checked++, [])),
  });
  const start = Date.now();
  const token = await tokenOf(pair, { sluice: READ, exp: inSeconds(600) });
  const all = await Promise.all(Array.from({ length: 50 }, () => Promise.resolve(ask(token))));
  assert.equal(checked, 1);
  assert.equal(new Set(all).size, 1);
  assert.equal(ask(token), all[0], 'at once, without a promise');
  t.mock.timers.setTime(start + 659_000);
  assert.equal(ask(token), all[0], 'within the leeway of 60 s');
  t.mock.timers.setTime(start + 660_001);
  assert.throws(() => ask(token), /The token has expired/);
  const limited = await tokenOf(pair, {
    exp: inSeconds(6000),
    sluice: { ...READ, expires: new Date(Date.now() + 10_000).toISOString() },
  });
  assert.equal(await code(limited), 'ada');
  pass(11_000);
  assert.equal(await code(limited), 'unauthorized', 'the claim ends before the token');
});

test('a token without kid is tried with each key that it fits, while an issuer changes its keys', async (t) => {
  const [old, next, foreign] = await Promise.all(['old', 'next', 'old'].map((kid) => signingPair(kid)));
  assert.ok(old && next && foreign);
  const { code } = await tokensOf(t, { pairs: [old, next] });
  const nameless = { kid: undefined };
  for (const pair of [old, next])
    assert.equal(await code(await tokenOf(pair, { sluice: READ }, nameless)), 'ada');
  for (const [pair, claims] of [
    [foreign, {}],
    [next, { exp: 1 }],
    [old, { aud: 'other' }],
  ] as const)
    assert.equal(await code(await tokenOf(pair, { sluice: READ, ...claims }, nameless)), 'unauthorized');
});

test('no more than a megabyte of an answer of the key server is read, whatever its coding', async (t) => {
  const blanks = gzipSync(Buffer.alloc(50_000_000, ' '));
  let sent = 0;
  const server = createServer(({ url }, response) => {
    if (url === '/gzip') return void response.writeHead(200, { 'content-encoding': 'gzip' }).end(blanks);
    const status = url === '/endless' ? 200 : 500;
    response.writeHead(status);
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536, ' '))) sent += 65_536;
    };
    response.on('drain', more);
    more();
  });
  const port = await listening(t, server);
  for (const path of ['endless', 'failing', 'gzip']) {
    const lines: string[] = [];
    const settings = { url: `http://127.0.0.1:${port}/${path}`, issuer: ISSUER, audience: AUDIENCE };
    const check = new TokenCheck(settings, logTo(lines));
    await check.refresh();
    check.close();
    assert.match(lines.join(''), /the key server sent more than 1000000 bytes/, path);
  }
  assert.ok(sent < 50_000_000, `${sent} bytes were taken`);
});

/** A check of tokens by the issuer alone, whose configuration is asked for the keys. */
async function discovered(t: TestContext, configuration: (issuer: TestIssuer) => object) {
  const pair = await signingPair('one');
  const issuer = await testIssuer(t, [pair]);
  const { origin } = new URL(issuer.url);
  issuer.configuration = configuration(issuer);
  const lines: string[] = [];
  const check = new TokenCheck({ url: null, issuer: origin, audience: AUDIENCE }, logTo(lines));
  t.after(() => check.close());
  await check.refresh();
  const verify = async () => check.verify(await tokenOf(pair, { iss: origin }));
  return { issuer, origin, lines, check, verify, pair };
}

test('the configuration of the issuer names the keys, which are kept while it is away', async (t) => {
  const { issuer, origin, check, verify } = await discovered(t, ({ url }) => ({
    issuer: new URL(url).origin,
    jwks_uri: url,
  }));
  await verify();
  issuer.configuration = { issuer: `${origin}/other`, jwks_uri: issuer.url };
  const { fetches } = issuer;
  await check.refresh();
  assert.equal(issuer.fetches, fetches, 'the keys of another issuer are not fetched');
  await verify();
});

for (const [what, configuration, said] of [
  ['of another issuer', { issuer: 'https://other.example' }, /of the issuer .*other\.example/],
  ['of an issuer with one slash more', { slash: true }, /not of JWT_ISSUER/],
  ['without keys', { jwks_uri: undefined }, /must be an https URL/],
  [
    'with keys that somebody on the way can replace',
    { jwks_uri: 'http://keys.example/jwks' },
    /must be an https URL/,
  ],
  ['that is no object', null, /not of JWT_ISSUER/],
] as const)
  test(`a configuration ${what} gives no keys`, async (t) => {
    const { verify, lines, issuer } = await discovered(t, ({ url }) => {
      const { origin } = new URL(url);
      const good = { issuer: origin, jwks_uri: url };
      if (configuration === null) return [];
      return { ...good, ...configuration, ...('slash' in configuration && { issuer: `${origin}/` }) };
    });
    assert.match(lines.join(), said);
    assert.equal(issuer.fetches, 0);
    await assert.rejects(verify(), { code: 'key-server-unavailable' });
  });
