import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { StallError } from '../../src/engine/stall-timer.ts';
import { compress } from '../../src/pipeline/compress.ts';
import type { Sink } from '../../src/pipeline/sink.ts';
import { serveWith, stream, whyNoUws, type EngineName } from '../support/engine/engines.ts';
import { deferred, request } from '../support/engine/raw.ts';

const CHUNK = Buffer.alloc(50_000, 'x');

/** A client that reads `bytesPerSecond` and counts; 0 reads nothing. */
function trickle(t: TestContext, port: number, path: string, bytesPerSecond: number) {
  const tick = 50;
  let allowed = 0;
  const seen = { bytes: 0, tail: '', closed: false };
  const buffer = Buffer.alloc(16_384);
  const socket: Socket = connect({
    port,
    host: '127.0.0.1',
    onread: {
      buffer,
      callback: (size) => {
        seen.bytes += size;
        seen.tail = (seen.tail + buffer.toString('latin1', 0, size)).slice(-10);
        return seen.bytes < allowed;
      },
    },
  });
  t.after(() => socket.destroy());
  socket.on('error', () => (seen.closed = true));
  socket.on('close', () => (seen.closed = true));
  socket.write(request(path));
  const timer = setInterval(() => {
    allowed += (bytesPerSecond * tick) / 1000;
    if (bytesPerSecond > 0 && seen.bytes < allowed) socket.resume();
  }, tick);
  t.after(() => clearInterval(timer));
  if (bytesPerSecond === 0) socket.pause();
  return { socket, seen, readOn: () => (allowed = Infinity) };
}

function stalling(name: EngineName): void {
  /** Serves an endless stream or a large body. Resolves with the time and reason of the cut. */
  async function serveEndless(t: TestContext, stallTimeoutMs: number) {
    const cut = deferred<{ at: number; reason: unknown }>();
    const { port, errors } = await serveWith(
      t,
      name,
      ({ path, signal }) => {
        signal.addEventListener('abort', () => cut.resolve({ at: performance.now(), reason: signal.reason }));
        if (path === '/bytes') {
          return Promise.resolve({
            status: 200,
            headers: {},
            body: { kind: 'bytes', bytes: Buffer.alloc(50_000_000) },
          });
        }
        const endless = async (sink: Sink) => {
          for (;;) {
            await sink.write(CHUNK);
            await new Promise((resolve) => setImmediate(resolve)); // without it one fast reader starves the others
          }
        };
        return Promise.resolve(
          stream(async (sink) => endless(path === '/gzip' ? compress('gzip', sink) : sink)),
        );
      },
      { stallTimeoutMs },
    );
    return { port, errors, cut: cut.promise };
  }

  for (const path of ['/stream', '/bytes']) {
    it(`a reader that takes nothing of ${path} is cut after the stall time, without a clean end`, async (t) => {
      const { port, errors, cut } = await serveEndless(t, 600);
      const began = performance.now();
      const { socket, seen, readOn } = trickle(t, port, path, 0);
      const { at, reason } = await cut;
      assert.ok(reason instanceof StallError);
      assert.ok(at - began >= 600, 'not before');
      assert.ok(at - began < 15_000, `soon after: ${Math.round(at - began)} ms`);
      readOn();
      socket.resume();
      while (!seen.closed) await new Promise((resolve) => setImmediate(resolve));
      assert.ok(!seen.tail.endsWith('0\r\n\r\n'), 'no clean end');
      assert.deepEqual(errors, []);
    });
  }

  // The kernel reports a reader's progress in steps: 64 KB for a probe, otherwise a third of its 4 MB buffer.
  const honest = name === 'uws' ? 400_000 : 4_000_000;
  it(`a reader of ${honest / 1000} kB/s is never cut, even when it takes far longer than the stall time`, async (t) => {
    const { port, cut } = await serveEndless(t, 1500);
    const { seen } = trickle(t, port, '/stream', honest);
    const lived = new Promise<'lived'>((resolve) => setTimeout(() => resolve('lived'), 6000));
    assert.equal(await Promise.race([cut, lived]), 'lived');
    assert.ok(!seen.closed);
  });

  it(
    'readers of 1, 5, 20 and 50 kB/s outlive the timers inside the engine',
    { skip: process.env.LONG === '1' ? false : 'LONG=1 is not set' },
    async (t) => {
      const { port, cut } = await serveEndless(t, 300_000);
      const paths = ['/stream', '/bytes', '/gzip'];
      const readers = paths.flatMap((path) =>
        [1_000, 5_000, 20_000, 50_000].map((rate) => trickle(t, port, path, rate)),
      );
      const lived = new Promise<'lived'>((resolve) => setTimeout(() => resolve('lived'), 120_000));
      assert.equal(await Promise.race([cut, lived]), 'lived');
      for (const { seen } of readers) assert.ok(!seen.closed);
    },
  );
}

describe('on uWebSockets.js', { skip: whyNoUws() ?? false, concurrency: true }, () => stalling('uws'));
describe('on node:http', { concurrency: true }, () => stalling('node'));
