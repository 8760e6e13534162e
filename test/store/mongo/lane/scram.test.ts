import assert from 'node:assert/strict';
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { test } from 'node:test';
import { Binary } from '../../../../src/store/values/bson.ts';
import { LaneBroken } from '../../../../src/store/mongo/lane/message.ts';
import { Scram, type Run } from '../../../../src/store/mongo/lane/scram.ts';

const CREDENTIALS = { username: 'ada', password: 'secret', source: 'admin', mechanism: 'SCRAM-SHA-256' };

/** How a server may misbehave. By default it is a correct one that knows the password (RFC 5802, server's side). */
interface Server {
  readonly nonce?: (client: string) => string;
  readonly iterations?: number;
  readonly password?: string;
  readonly payload?: (text: string) => unknown;
}

function serverRun({
  nonce = (client) => `${client}server`,
  iterations = 4096,
  password = CREDENTIALS.password,
  payload = (text) => new Binary(Buffer.from(text)),
}: Server): Run {
  const hmac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest();
  const salt = Buffer.from('some salt');
  let bare = '';
  let first = '';
  return (command) => {
    const text = (command.payload as Buffer).toString();
    if ('saslStart' in command) {
      bare = text.slice('n,,'.length);
      first = `r=${nonce(/r=(.*)$/.exec(bare)?.[1] ?? '')},s=${salt.toString('base64')},i=${iterations}`;
      return Promise.resolve({ conversationId: 1, done: false, payload: payload(first) });
    }
    const [withoutProof = '', proof = ''] = text.split(',p=');
    const message = `${bare},${first},${withoutProof}`;
    const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
    const storedKey = createHash('sha256').update(hmac(salted, 'Client Key')).digest();
    const signature = hmac(storedKey, message);
    const clientKey = Buffer.from(proof, 'base64').map((byte, at) => byte ^ (signature[at] ?? 0));
    if (password === CREDENTIALS.password)
      assert.deepEqual(createHash('sha256').update(clientKey).digest(), storedKey, 'the proof is correct');
    const v = hmac(hmac(salted, 'Server Key'), message).toString('base64');
    return Promise.resolve({ conversationId: 1, done: true, payload: payload(`v=${v}`) });
  };
}

test('SCRAM proves that it knows the password, on every connection', async () => {
  const scram = new Scram(CREDENTIALS);
  for (let connection = 0; connection < 3; connection++) await scram.authenticate(serverRun({}), undefined);
  await scram.authenticate(serverRun({ iterations: 5000 }), undefined);
});

const IMPOSTORS: readonly (readonly [string, Server])[] = [
  ['does not know the password', { password: 'guessed' }],
  ['answers with a nonce of its own', { nonce: () => 'server' }],
  ['adds nothing to the nonce', { nonce: (client) => client }],
  ['lets the password be guessed cheaply', { iterations: 4095 }],
  ['sends no payload', { payload: () => undefined }],
  ['sends an empty payload', { payload: () => new Binary(Buffer.alloc(0)) }],
];

for (const [what, server] of IMPOSTORS)
  test(`SCRAM refuses a server that ${what}`, async () => {
    await assert.rejects(new Scram(CREDENTIALS).authenticate(serverRun(server), undefined), LaneBroken);
  });
