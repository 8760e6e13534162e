import { createServer } from 'node:http';
import type { TestContext } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK, type JWTPayload } from 'jose';
import { listening } from '../ports.ts';

export const ISSUER = 'https://issuer.example/';
export const AUDIENCE = 'sluice-test';

export interface SigningPair {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export async function signingPair(kid: string, alg = 'ES256'): Promise<SigningPair> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } };
}

/** A key server that publishes these keys. `answer` replaces its answer; `fetches` counts requests. */
export interface TestIssuer {
  readonly url: string;
  /** What it says of itself, where somebody asks. Without an issuer it is its own address. */
  configuration: object;
  fetches: number;
  keys: readonly JWK[];
  answer: { readonly status: number; readonly text: string } | null;
}

export async function testIssuer(t: TestContext, pairs: readonly SigningPair[]): Promise<TestIssuer> {
  const state = {
    url: '',
    configuration: {},
    fetches: 0,
    keys: pairs.map(({ jwk }) => jwk),
    answer: null as TestIssuer['answer'],
  };
  const server = createServer((request, response) => {
    if (request.url === '/.well-known/openid-configuration') {
      response.end(JSON.stringify(state.configuration));
      return;
    }
    state.fetches++;
    const { status, text } = state.answer ?? { status: 200, text: JSON.stringify({ keys: state.keys }) };
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  });
  const issuer = `http://127.0.0.1:${await listening(t, server)}`;
  state.url = `${issuer}/jwks`;
  state.configuration = { issuer, jwks_uri: state.url };
  return state;
}

export const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

/** A token with these claims in place of good ones; undefined takes one away. */
export function tokenOf(pair: SigningPair, claims: JWTPayload = {}, header: object = {}): Promise<string> {
  const good = { iss: ISSUER, aud: AUDIENCE, sub: 'ada', exp: inSeconds(600) };
  const payload = JSON.parse(JSON.stringify({ ...good, ...claims })) as JWTPayload;
  return new SignJWT(payload)
    .setProtectedHeader({ alg: pair.alg, kid: pair.kid, ...header })
    .sign(pair.privateKey);
}

/** A token with this payload, byte for byte, and a valid signature. */
export async function tokenOfText(pair: SigningPair, payload: string, header?: string): Promise<string> {
  const head = header ?? JSON.stringify({ alg: pair.alg, kid: pair.kid });
  const input = [head, payload].map((text) => Buffer.from(text).toString('base64url')).join('.');
  const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
  const signature = await crypto.subtle.sign(algorithm, pair.privateKey, Buffer.from(input));
  return `${input}.${Buffer.from(signature).toString('base64url')}`;
}

export const jwtSettings = ({ url }: TestIssuer) => ({
  JWT_JWKS_URL: url,
  JWT_ISSUER: ISSUER,
  JWT_AUDIENCE: AUDIENCE,
});
