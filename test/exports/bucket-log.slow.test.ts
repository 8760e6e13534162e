import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Export } from '../../src/exports/export.ts';
import { bearer, keysText } from '../support/access/keyed.ts';
import { temporaryFolder } from '../support/directory.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { childServer, type ChildServer } from '../support/process/child-server.ts';
import { newFiles } from '../support/store/bucket/bucket.ts';
import {
  faultyGateway,
  IS,
  type Fault,
  type FaultyGateway,
  type Seen,
} from '../support/store/bucket/gateway.ts';
import { Seaweed } from '../support/store/bucket/seaweed.ts';
import { tokenOf, withoutTokens } from '../support/store/bucket/session.ts';

const SECRET = 'a-secret-of-the-bucket';
const OLD = 'the-token-of-yesterday';
const NEW = 'the-token-of-today';
const KEY = bearer('ada');
const ANOTHER = bearer('nobody');
/** What stores tell a client of its own request when they refuse it. */
const TOLD = `<Token-0>${OLD}</Token-0><StringToSign>AWS4-HMAC-SHA256 ${OLD}</StringToSign>`;
const refusal = (status: number, code: string): Fault => ({ status, code, more: TOLD });
/** Several parts of a bucket. */
const LARGE = { resource: 'items', format: 'ndjson', compression: 'none' };
const SMALL = { resource: 'items', format: 'csv', compression: 'none', fields: ['price'] };

interface Logged {
  readonly server: ChildServer;
  readonly gateway: FaultyGateway;
  /** Replaces the session token. */
  readonly renew: () => void;
}

/** A server with the sample catalogue, all of whose log is kept. null: there is no store here. */
async function loggedServer(t: TestContext): Promise<Logged | null> {
  const weed = await Seaweed.start(t);
  if (!weed) return null;
  const gateway = await faultyGateway(t, weed.endpoint);
  gateway.forward = withoutTokens(weed.endpoint);
  const folder = await temporaryFolder(t);
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const server = await childServer(t, {
    LOG_LEVEL: 'trace',
    SAMPLE: 'on',
    FILES: await newFiles(weed, gateway.endpoint),
    S3_ACCESS_KEY_ID: 'an-access-key',
    S3_SECRET_ACCESS_KEY_FILE: file('secret', SECRET),
    S3_SESSION_TOKEN_FILE: file('token', OLD),
    API_KEYS_FILE: file('keys.json', keysText([{ name: 'ada' }])),
  });
  return { server, gateway, renew: () => void file('token', NEW) };
}

/** Orders exports while the store has faults. Resolves with the one whose token ended while it was sent. */
async function orders({ server, gateway, renew }: Logged): Promise<Export> {
  const made = async (body: object, decide: FaultyGateway['decide'], isIt?: (found: Export) => boolean) => {
    gateway.decide = decide;
    const { id } = await order(server.url.origin, body, KEY);
    return awaited(server.url.origin, id, isIt, KEY);
  };
  const passing: Fault[] = ['refuse', 'cut', 'lose'];
  passing.push(refusal(503, 'SlowDown'), refusal(403, 'SignatureDoesNotMatch'));
  let hasEnded = 0;
  const done = await made(LARGE, (seen) => {
    if (IS.complete(seen)) hasEnded++;
    if (hasEnded > 0 && tokenOf(seen) === OLD) {
      renew();
      return refusal(400, 'ExpiredToken');
    }
    return IS.part(seen) ? (passing.shift() ?? null) : null;
  });
  assert.deepEqual([passing.length, hasEnded], [0, 2]);
  const isFailed = ({ state }: Export): boolean => state === 'failed';
  const once = [refusal(400, 'MalformedXML')];
  await made(SMALL, (seen) => (IS.put(seen) ? (once.shift() ?? null) : null));
  await made(SMALL, (seen) => (IS.put(seen) ? refusal(403, 'AccessDenied') : null), isFailed);
  await made(LARGE, (seen) => (IS.part(seen) ? refusal(404, 'NoSuchBucket') : null), isFailed);
  return done;
}

/** Downloads by link and by the server: whole, refused by the store, and without a right. */
async function downloads({ server, gateway }: Logged, { id, file }: Export): Promise<void> {
  const get = (path: string, headers = KEY) => fetch(server.url.origin + path, { headers });
  const path = file?.url ?? '';
  gateway.decide = () => null;
  for (const how of [path, `${path}?proxy=true`])
    assert.equal((await (await get(how)).arrayBuffer()).byteLength, file?.bytes);
  assert.equal((await get(path, ANOTHER)).status, 401);
  gateway.decide = (seen) => (IS.get(seen) ? refusal(403, 'AccessDenied') : null);
  await assert.rejects(
    get(`${path}?proxy=true`).then((answer) => answer.arrayBuffer()),
    'its size is known, so its answer has begun and is cut',
  );
  gateway.decide = () => refusal(400, 'InvalidRequest');
  assert.match(await (await get('/readyz')).text(), /InvalidRequest/);
  gateway.decide = () => null;
  const removed = await fetch(`${server.url.origin}/exports/${id}`, { method: 'DELETE', headers: KEY });
  assert.equal(removed.status, 200);
}

/** The signatures of all requests and links. */
function signaturesOf(seen: readonly Seen[]): readonly string[] {
  const texts = seen.map(({ url, headers }) => `${url} ${headers.authorization ?? ''}`);
  return texts.flatMap((text) =>
    [...text.matchAll(/Signature=(\w+)/g)].map(([, signature = '']) => signature),
  );
}

test('at level trace the log has no secret, token or signature of a bucket, and no key of a client', async (t) => {
  const opened = await loggedServer(t);
  if (!opened) return;
  const { server, gateway } = opened;
  const done = await orders(opened);
  await downloads(opened, done);
  await server.end('SIGTERM');
  const lines: string[] = [];
  for await (const line of server.log) lines.push(JSON.stringify(line));
  const has = (text: string) => lines.find((line) => line.includes(text));
  for (const told of [
    'MalformedXML',
    'AccessDenied',
    'NoSuchBucket',
    'export complete',
    done.file?.url ?? '',
  ])
    assert.ok(has(told) !== undefined, `the log tells ${told}`);
  const signatures = signaturesOf(gateway.seen);
  assert.ok(gateway.seen.some(({ url }) => url.includes('X-Amz-Signature=')) && signatures.length > 10);
  const secrets = [SECRET, OLD, NEW, KEY.authorization, ANOTHER.authorization, 'secret-of-', 'Bearer'];
  for (const hidden of [...signatures, ...secrets, 'X-Amz-', 'AWS4-HMAC'])
    assert.equal(has(hidden), undefined);
});
