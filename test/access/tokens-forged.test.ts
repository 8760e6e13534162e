import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { CompactEncrypt, exportSPKI, generateKeyPair, importJWK, type CryptoKey } from 'jose';
import { AUDIENCE, inSeconds, ISSUER, signingPair, tokenOf, tokenOfText } from '../support/access/issuer.ts';
import { READ, refusal, tokenServer } from '../support/access/tokened.ts';

test('every token whose signature does not prove the issuer gets the same error', async (t) => {
  const { pair, ask, issuer } = await tokenServer(t);
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
