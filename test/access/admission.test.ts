import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { AppError } from '../../src/errors.ts';
import { dispatch } from '../../src/http/dispatch.ts';
import { createAdmissions, type AdmissionOptions, type Demand } from '../../src/access/admission.ts';
import { createClientReader } from '../../src/access/client.ts';
import type { Reply, Request } from '../../src/engine/edge.ts';
import { Keyring, type Key } from '../../src/access/keys.ts';
import type { Route } from '../../src/http/route.ts';
import { createRouter } from '../../src/http/router.ts';
import { createMemoryLimiter } from '../../src/access/limiter-memory.ts';
import { ALL_RIGHTS } from '../../src/access/rights.ts';
import { createStreamSlots } from '../../src/access/stream-slots.ts';
import type { Sink } from '../../src/pipeline/sink.ts';
import { requestOf } from '../support/engine/engines.ts';

const POLICY = { limit: 3, windowSeconds: 60 };
const keyring = new Keyring(['alice', 'bob'].map(keyOf));
const KEYS = (authorization: string | undefined) => keyring.authenticate(authorization);

function keyOf(name: string): Key {
  const digest = createHash('sha256').update(`${name}-key`).digest();
  return { name, digest, rights: ALL_RIGHTS, expires: Infinity };
}

const request = (given: Partial<Request> = {}) => requestOf({ path: '/items', ...given });

const PAGE: Demand = { access: 'keyed', cost: 'page' };
const STREAM: Demand = { access: 'keyed', cost: 'stream' };

function admissions(overrides: Partial<AdmissionOptions> = {}) {
  const slots = createStreamSlots({ perClient: 2, total: 3 });
  const limiter = createMemoryLimiter(POLICY, { now: () => 0, addresses: 1024 });
  const admit = createAdmissions({
    readClient: createClientReader({ trusts: () => false, onWarning: () => undefined }),
    authenticate: null,
    rate: { policy: POLICY, limiter },
    slots,
    ...overrides,
  });
  /** The code of the refusal, or `in`, and the value of RateLimit. */
  const decide = async (given: Partial<Request> = {}, demand: Demand | null = PAGE) => {
    const { headers, refused } = await admit.admit(request(given), demand);
    return `${refused?.code ?? 'in'} ${headers.ratelimit ?? 'unlimited'}`;
  };
  return { admit, slots, decide };
}

test('a client with a key is its key from any address, and a client without a key is its address', async () => {
  const { decide } = admissions({ authenticate: KEYS });
  const as = (name: string, address: string) => ({
    headers: { authorization: `Bearer ${name}-key` },
    address,
  });
  assert.equal(await decide(as('alice', '192.0.2.1')), 'in "default";r=2;t=60');
  assert.equal(await decide(as('alice', '192.0.2.2')), 'in "default";r=1;t=60');
  assert.equal(await decide(as('bob', '192.0.2.1')), 'in "default";r=2;t=60');
  assert.equal(await decide(as('mallory', '192.0.2.1')), 'unauthorized "default";r=2;t=60');
  assert.equal(await decide(as('carol', '192.0.2.1')), 'unauthorized "default";r=1;t=60');
  assert.equal(await decide({ address: '192.0.2.1' }), 'unauthorized "default";r=0;t=60');
  assert.equal(
    await decide(as('eve', '192.0.2.1')),
    'rate-limited "default";r=0;t=60',
    'wrong keys are rate limited, too',
  );
  assert.equal(
    await decide(as('alice', '192.0.2.1')),
    'in "default";r=0;t=60',
    'a client with a key is not affected',
  );
});

function sink(): { sink: Sink; leave: () => void } {
  const controller = new AbortController();
  const nothing = () => undefined;
  return {
    sink: {
      chunkBytes: 1024,
      signal: controller.signal,
      write: nothing,
      flush: nothing,
      end: nothing,
      fail: nothing,
    },
    leave: () => controller.abort(new Error('gone')),
  };
}

/** A stream route with this answer, called through admission and dispatch. */
function streaming(admit: ReturnType<typeof createAdmissions>, answer: () => Reply | Promise<Reply>) {
  const route: Route = {
    ...{ method: 'GET', path: '/items', ...STREAM, id: 'x', tag: 'Items', summary: 'x', answers: {} },
    handler: answer,
  };
  const router = createRouter([route]);
  return async (asked: Request): Promise<Reply> => {
    const { client } = await admit.admit(asked, STREAM);
    return dispatch(asked, router.find(asked), client, {
      acquire: () => admit.acquire(client),
      coded: ({ headers }) => headers,
      mayGoOn: () => true,
      router,
    });
  };
}

function streamReply(run: (sink: Sink) => Promise<void>): Reply {
  return { status: 200, headers: {}, body: { kind: 'stream', run } };
}

async function run({ body }: Reply, into: Sink): Promise<void> {
  if (body.kind !== 'stream') assert.fail(`a stream, not ${body.kind}`);
  await body.run(into);
}

test('a stream holds its slot from before its handler runs until it ends, also when it fails', async () => {
  const { admit, slots } = admissions();
  const seen: number[] = [];
  const handler = streaming(admit, () => {
    seen.push(slots.open);
    return streamReply(() => (seen.push(slots.open), Promise.resolve()));
  });
  await run(await handler(request()), sink().sink);
  assert.deepEqual([...seen, slots.open], [1, 1, 0]);
  const failing = streaming(admit, () => streamReply(() => Promise.reject(new Error('store'))));
  await assert.rejects(run(await failing(request()), sink().sink), /store/);
  const refusing = streaming(admit, () => Promise.reject(new AppError('invalid-parameter', 'no')));
  await assert.rejects(Promise.resolve(refusing(request())), /no/);
  const plain = streaming(admit, () => ({ status: 202, headers: {}, body: { kind: 'none' } }));
  assert.equal((await plain(request())).status, 202);
  assert.equal(slots.open, 0);
});

test('a file holds its slot from before its head is sent, and releases it when the file is not sent', async () => {
  const { admit, slots } = admissions();
  let written = 0;
  const handler = streaming(admit, () => ({
    status: 200,
    headers: { etag: '"a"' },
    body: { kind: 'file', length: 9, write: () => (written++, Promise.resolve()) },
  }));
  const replies = [await handler(request()), await handler(request())];
  await assert.rejects(Promise.resolve(handler(request())), { code: 'too-many-streams' });
  for (const reply of replies) await run(reply, sink().sink);
  assert.deepEqual([slots.open, written], [0, 2]);
  const known = await handler(request({ headers: { 'if-none-match': '"a"' } }));
  assert.deepEqual([known.status, slots.open], [304, 0]);
  for (const headers of [{ 'if-match': '"b"' }, { range: 'bytes=9-' }, { 'if-none-match': 'a' }] as const)
    await assert.rejects(Promise.resolve(handler(request({ headers }))), AppError);
  assert.equal(slots.open, 0);
  const part = await handler(request({ headers: { range: 'bytes=2-4' } }));
  assert.deepEqual([part.status, part.body.kind, slots.open], [206, 'stream', 1]);
  const gone = sink();
  gone.leave();
  await run(part, gone.sink);
  assert.equal(slots.open, 0);
});

test('a client that leaves frees its slot at once, before its work has ended', async () => {
  const { admit, slots } = admissions();
  let windDown: () => void = () => undefined;
  const handler = streaming(admit, () => streamReply(() => new Promise((resolve) => (windDown = resolve))));
  const { sink: into, leave } = sink();
  const running = run(await handler(request()), into);
  assert.equal(slots.open, 1);
  leave();
  assert.equal(slots.open, 0);
  await handler(request());
  windDown();
  await running;
  assert.equal(slots.open, 1, 'its end releases no other slot');
  const late = await handler(request());
  const gone = sink();
  gone.leave();
  void run(late, gone.sink);
  assert.equal(slots.open, 1, 'the client left before the first byte');
});

test('no handler runs for a stream without a slot, and slots count the same clients as rates do', async () => {
  const { admit } = admissions({ authenticate: KEYS });
  let made = 0;
  const handler = streaming(admit, () => (made++, streamReply(() => Promise.resolve())));
  const alice = request({ headers: { authorization: 'Bearer alice-key' } });
  await handler(alice);
  await handler(alice);
  await assert.rejects(Promise.resolve(handler(alice)), { code: 'too-many-streams' });
  await handler(request({ headers: { authorization: 'Bearer bob-key' } }));
  await assert.rejects(Promise.resolve(handler(request({ headers: { authorization: 'Bearer bob-key' } }))), {
    code: 'overloaded',
  });
  assert.equal(made, 3);
});
