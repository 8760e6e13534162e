import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Reply } from '../../src/engine/edge.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { request } from '../support/engine/raw.ts';
import { serverOn, type EngineName } from '../support/process/server.ts';

const ROUNDS = 100;
const AT_ONCE = 10;
/** Rounds of warm-up, until everything is compiled and every pool has its full size. */
const WARM = 40;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`${ROUNDS * AT_ONCE} clients of ${engine} that leave their streams: work stops within 250 ms, nothing stays`, async (t) => {
    const left = new Map<string, number>();
    const took: number[] = [];
    const server = await serverOn(
      t,
      { MONGODB_URI: '', HTTP_ENGINE: engine, RATE_LIMIT: 'off', STREAM_LIMIT: 'off' },
      {
        tap: (serve) => async (asked) => {
          const reply: Reply = await serve(asked);
          const id = asked.headers['x-request-id'] ?? '';
          if (reply.body.kind !== 'stream') return reply;
          const { run } = reply.body;
          const timed: typeof run = async (sink) => {
            try {
              await run(sink);
            } finally {
              const at = left.get(id);
              if (at !== undefined) took.push(performance.now() - at);
              left.delete(id);
            }
          };
          return { ...reply, body: { ...reply.body, run: timed } };
        },
      },
    );
    await server.insert(catalogue(4_000).map((row) => ({ ...row.document, fill: 'x'.repeat(4_000) })));
    const port = Number(new URL(server.url).port);
    const heaps: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(
        Array.from({ length: AT_ONCE }, async (_, n) => {
          const socket = connect(port, '127.0.0.1');
          const id = `${round}-${n}`;
          const coding = ['identity', 'gzip', 'br'][n % 3] ?? '';
          socket.write(request('/items/stream', [`X-Request-Id: ${id}`, `Accept-Encoding: ${coding}`]));
          const wanted = 20_000 * (n % 4) + 200;
          for await (const piece of socket.iterator({ destroyOnReturn: false }))
            if (socket.bytesRead > wanted && (piece as Buffer).length > 0) break;
          left.set(id, performance.now());
          if (n % 2 === 0) socket.destroy();
          else socket.resetAndDestroy();
        }),
      );
      while (took.length < (round + 1) * AT_ONCE) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(server.slots.taken, 0);
      collectGarbage();
      heaps.push(process.memoryUsage().heapUsed);
    }
    took.sort((a, b) => a - b);
    const p99 = took[Math.floor(took.length * 0.99)] ?? Infinity;
    const [first = 0, last = 0] = [heaps[WARM], heaps.at(-1)];
    const grown = (last / first - 1) * 100;
    t.diagnostic(
      `${took.length} left: p99 ${p99.toFixed(1)} ms, longest ${took.at(-1)?.toFixed(1) ?? ''} ms; heap ${grown.toFixed(1)} % from round ${WARM} to ${ROUNDS}`,
    );
    assert.ok(p99 <= 250);
    assert.ok(grown <= 5, `heap: ${heaps.join(' ')}`);
  });
