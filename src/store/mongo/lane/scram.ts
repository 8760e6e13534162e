import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { Binary } from '../../values/bson.ts';
import { LaneBroken } from './message.ts';

/** Runs a command on the connection being authenticated. Resolves with the reply's document. */
export type Run = (command: Readonly<Record<string, unknown>>) => Promise<Readonly<Record<string, unknown>>>;

export interface Credentials {
  readonly username: string;
  readonly password: string;
  readonly source: string;
  /** `DEFAULT`: the strongest mechanism that the server has for this user. */
  readonly mechanism: string;
}

const MECHANISMS = {
  'SCRAM-SHA-1': { hash: 'sha1', bytes: 20 },
  'SCRAM-SHA-256': { hash: 'sha256', bytes: 32 },
} as const;
type Mechanism = keyof typeof MECHANISMS;
/** RFC 7677, section 4. */
const FEWEST_ITERATIONS = 4096;
const derive = promisify(pbkdf2);

/**
 * SCRAM (RFC 5802, RFC 7677) without channel binding, as MongoDB uses it. One instance serves all connections: deriving
 * the salted password takes some 10 ms of a core, and members of a replica set share the salt.
 */
export class Scram {
  readonly #credentials: Credentials;
  #salted: { readonly from: string; readonly password: Promise<Buffer> } | null = null;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
  }

  /** The fields to add to `hello`, so that `authenticate` learns which mechanisms this user has. */
  get helloQuestion(): Readonly<Record<string, unknown>> {
    const { username, source, mechanism } = this.#credentials;
    return mechanism === 'DEFAULT' ? { saslSupportedMechs: `${source}.${username}` } : {};
  }

  /** Rejects with LaneBroken when the server does not prove that it knows the password, else as `run` does. */
  async authenticate(run: Run, supported: unknown): Promise<void> {
    const { username, source: $db } = this.#credentials;
    const mechanism = this.#choose(supported);
    const nonce = randomBytes(24).toString('base64');
    const bare = `n=${username.replace(/=/g, '=3D').replace(/,/g, '=2C')},r=${nonce}`;
    const payload = Buffer.from(`n,,${bare}`);
    const start = await run({
      saslStart: 1,
      mechanism,
      payload,
      options: { skipEmptyExchange: true },
      $db,
    });
    const first = textOf(start.payload);
    const { r = '', s = '', i = '' } = fieldsOf(first);
    if (!r.startsWith(nonce) || r.length === nonce.length) throw new LaneBroken('SCRAM: not our nonce');
    if (!(Number(i) >= FEWEST_ITERATIONS)) throw new LaneBroken(`SCRAM: ${i} iterations are too few`);

    const { hash } = MECHANISMS[mechanism];
    const hmac = (key: Buffer, text: string) => createHmac(hash, key).update(text).digest();
    const salted = await this.#saltedPassword(mechanism, s, Number(i));
    const clientKey = hmac(salted, 'Client Key');
    const final = `c=biws,r=${r}`;
    const message = `${bare},${first},${final}`;
    const signature = hmac(createHash(hash).update(clientKey).digest(), message);
    const proof = Buffer.from(clientKey.map((byte, at) => byte ^ (signature[at] ?? 0))).toString('base64');
    const { conversationId } = start;
    const end = await run({
      saslContinue: 1,
      conversationId,
      payload: Buffer.from(`${final},p=${proof}`),
      $db,
    });
    const expected = hmac(hmac(salted, 'Server Key'), message);
    const got = Buffer.from(fieldsOf(textOf(end.payload)).v ?? '', 'base64');
    if (got.length !== expected.length || !timingSafeEqual(got, expected))
      throw new LaneBroken('SCRAM: the server does not know the password');
  }

  #choose(supported: unknown): Mechanism {
    const { mechanism } = this.#credentials;
    if (Object.hasOwn(MECHANISMS, mechanism)) return mechanism as Mechanism;
    return Array.isArray(supported) && supported.includes('SCRAM-SHA-256') ? 'SCRAM-SHA-256' : 'SCRAM-SHA-1';
  }

  #saltedPassword(mechanism: Mechanism, salt: string, iterations: number): Promise<Buffer> {
    const from = `${mechanism},${salt},${iterations}`;
    if (this.#salted?.from === from) return this.#salted.password;
    const { username, password } = this.#credentials;
    // SHA-1 uses the digest of MONGODB-CR. SHA-256 uses the password itself: SASLprep leaves it unchanged because it
    // is ASCII.
    const secret =
      mechanism === 'SCRAM-SHA-256'
        ? password
        : createHash('md5').update(`${username}:mongo:${password}`).digest('hex');
    const { hash, bytes } = MECHANISMS[mechanism];
    const derived = derive(secret, Buffer.from(salt, 'base64'), iterations, bytes, hash);
    this.#salted = { from, password: derived };
    return derived;
  }
}

function textOf(payload: unknown): string {
  if (!(payload instanceof Binary)) throw new LaneBroken('SCRAM: a reply without payload');
  return Buffer.from(payload.buffer).toString('utf8', 0, payload.position);
}

/** `r=...,s=...,i=...` */
function fieldsOf(text: string): Partial<Record<string, string>> {
  const fields = text.split(',').map((part): [string, string] => [part.slice(0, 1), part.slice(2)]);
  return Object.fromEntries(fields);
}
