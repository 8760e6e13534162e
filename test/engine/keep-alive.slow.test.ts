import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createEngine } from '../../src/engine/engine.ts';
import { KeepAliveError } from '../../src/engine/keep-alive-error.ts';
import { keepAlive } from '../../src/engine/uws/library.ts';
import { serveWith, text, whyNoUws } from '../support/engine/engines.ts';
import { RawClient, request } from '../support/engine/raw.ts';

const KEEP_MS = 9_000;
/** Steps of 4 s in uWebSockets.js, node's look at its connections, and a machine with other work. */
const LATE_MS = 20_000;
const options = {
  serve: () => Promise.resolve(text('ran')),
  bodyLimit: 1000,
  stallTimeoutMs: 60_000,
  quietMs: 0,
  onError: () => undefined,
  cacheDirectory: join(tmpdir(), `sluice-test-addon-${process.getuid?.() ?? 0}`),
};

describe('an idle connection', { concurrency: true }, () => {
  for (const name of ['uws', 'node'] as const)
    it(
      `stays open for KEEP_ALIVE behind each answer, then ends: ${name}`,
      {
        skip: name === 'uws' && (whyNoUws() ?? false),
      },
      async (t) => {
        const { port } = await serveWith(t, name, options.serve, { keepAliveMs: KEEP_MS });
        const client = await RawClient.connect(t, port);
        let closedAt = 0;
        const closed = new Promise<void>((resolve) =>
          client.socket.once('close', () => {
            closedAt = performance.now();
            resolve();
          }),
        );
        let answeredAt = 0;
        for (let n = 0; n < 3; n++) {
          client.text = '';
          await client.send(request('/')).until((came) => came.endsWith('ran'));
          answeredAt = performance.now();
        }
        await closed;
        const keptMs = closedAt - answeredAt;
        t.diagnostic(`${Math.round(keptMs)} ms`);
        assert.ok(keptMs >= KEEP_MS - 50 && keptMs < KEEP_MS + LATE_MS, `${keptMs} ms`);
      },
    );
});

describe('a time that uWebSockets.js cannot keep', { skip: whyNoUws() ?? false }, () => {
  const long = { ...options, keepAliveMs: 1_200_000 };

  it('is served by node:http, with a warning', () => {
    const { engine, warning } = createEngine('auto', long);
    assert.equal(engine.name, 'node:http');
    assert.equal(
      warning,
      'using node:http instead of uWebSockets.js, which keeps idle connections for 900 s at most, and KEEP_ALIVE is 1200 s',
    );
    assert.equal(createEngine('auto', { ...long, keepAliveMs: 900_000 }).engine.name, 'uWebSockets.js');
  });

  it('is refused where HTTP_ENGINE asks for it', () => {
    assert.throws(() => createEngine('uws', long), KeepAliveError);
  });

  it('is 9 s in builds that have a fixed time', () => {
    const set: number[] = [];
    const fixed = {} as Parameters<typeof keepAlive>[0];
    keepAlive(fixed, 8_000);
    assert.throws(() => keepAlive(fixed, 9_000), /8 s at most/);
    const settable = { setResponseTimeout: (seconds: number) => set.push(seconds) };
    for (const ms of [1_000, 9_500, 900_000])
      keepAlive(settable as unknown as Parameters<typeof keepAlive>[0], ms);
    assert.deepEqual(set, [12, 14, 904]);
  });
});
