import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { once } from 'node:events';
import type { Ending, Reply, Request } from '../../src/engine/edge.ts';
import { ClientGoneError, StallError } from '../../src/engine/stall-timer.ts';
import { deferred, RawClient, rawExchange, request, type Deferred } from '../support/engine/raw.ts';
import { stream, text, type Served, type Serving } from '../support/engine/engines.ts';
import type { Sink } from '../../src/pipeline/sink.ts';

const CLOSE = ['Connection: close'];
const broken = new Error('broken');

/** The end of an answer is reported once, whatever it is. */
export function endingContract(serving: Serving): void {
  /** A server with one answer, and the report of its end. */
  const answering = async (
    t: TestContext,
    reply: (request: Request) => Reply | Promise<Reply>,
    overrides = {},
  ): Promise<Served & { ended: Deferred<Ending>; reports: () => number }> => {
    const ended = deferred<Ending>();
    let reports = 0;
    const settled = (ending: Ending) => {
      reports++;
      ended.resolve(ending);
    };
    const served = await serving(t, async (asked) => ({ ...(await reply(asked)), settled }), overrides);
    return { ...served, ended, reports: () => reports };
  };
  const begun = (then: (sink: Sink) => Promise<void>) =>
    stream(async (sink) => {
      await sink.write(Buffer.from('begun'));
      await sink.flush();
      await then(sink);
    });
  const untilAborted = (sink: Sink) =>
    new Promise<void>((_, reject) =>
      sink.signal.addEventListener('abort', () => reject(sink.signal.reason as Error)),
    );

  describe('the end of an answer', () => {
    const whole: [what: string, reply: () => Reply, method: string, bytes: number][] = [
      ['a small one', () => text('small'), 'GET', 5],
      ['a large one', () => text('x'.repeat(3_000_000)), 'GET', 3_000_000],
      ['a stream', () => stream(async (sink) => sink.write(Buffer.alloc(70_000))), 'GET', 70_000],
      ['one without a body', () => ({ status: 204, headers: {}, body: { kind: 'none' } }), 'GET', 0],
      ['one to HEAD', () => ({ status: 200, headers: {}, body: { kind: 'head', length: 5 } }), 'HEAD', 0],
    ];
    for (const [what, reply, method, bytes] of whole) {
      it(`of ${what} is reported with its status and bytes`, async (t) => {
        const { port, ended, reports } = await answering(t, reply);
        await rawExchange(t, port, request('/', CLOSE, method));
        assert.deepEqual(await ended.promise, { status: reply().status, bytes, cut: null });
        assert.equal(reports(), 1);
      });
    }

    it('is reported with the reason when a stream fails, and the error handler is not called', async (t) => {
      const { port, ended, reports, errors } = await answering(t, () => begun(() => Promise.reject(broken)));
      await rawExchange(t, port, request('/'));
      assert.deepEqual(await ended.promise, { status: 200, bytes: 5, cut: { reason: broken } });
      assert.equal(reports(), 1);
      assert.deepEqual(errors, []);
    });

    it('is reported when its client leaves in the middle, and when it leaves before the answer', async (t) => {
      const middle = await answering(t, () => begun(untilAborted));
      const client = await RawClient.connect(t, middle.port);
      await client.send(request('/')).until((came) => came.includes('begun'));
      client.socket.destroy();
      const { status, bytes, cut } = await middle.ended.promise;
      assert.deepEqual([status, bytes], [200, 5]);
      assert.ok(cut?.reason instanceof ClientGoneError);

      const asked = deferred();
      const early = await answering(t, async ({ signal }) => {
        const gone = once(signal, 'abort');
        asked.resolve();
        await gone;
        return text('late');
      });
      const impatient = await RawClient.connect(t, early.port);
      impatient.send(request('/'));
      await asked.promise;
      impatient.socket.resetAndDestroy();
      const late = await early.ended.promise;
      assert.equal(late.status, 0);
      assert.ok(late.cut?.reason instanceof ClientGoneError);
      assert.equal(early.reports(), 1);
    });

    it('is reported when its reader stalls', async (t) => {
      const flood = async (sink: Sink) => {
        for (;;) await sink.write(Buffer.alloc(65_536));
      };
      const stalling = await answering(t, () => stream(flood), { stallTimeoutMs: 300 });
      const client = await RawClient.connect(t, stalling.port);
      client.send(request('/'));
      client.socket.pause();
      assert.ok((await stalling.ended.promise).cut?.reason instanceof StallError);
    });

    it('of a reply that cannot be sent has the status of the 500 that replaces it', async (t) => {
      const { port, ended, reports } = await answering(t, () => text('x', 200, { 'X-Upper': 'b' }));
      await rawExchange(t, port, request('/', CLOSE));
      assert.equal((await ended.promise).status, 500);
      assert.equal(reports(), 1);
    });
  });
}

/** Listening and stopping. */
export function stopContract(serving: Serving): void {
  describe('an engine', () => {
    it('stops: running answers finish and close, idle connections close, and new ones are refused', async (t) => {
      const going = deferred();
      const asked = deferred();
      const { port, stop } = await serving(t, async ({ path }) => {
        if (path === '/slow') {
          asked.resolve();
          await going.promise;
        }
        return text(`done ${path}`);
      });
      const idle = await RawClient.connect(t, port);
      await idle.send(request('/idle')).until((came) => came.endsWith('done /idle'));
      const running = await RawClient.connect(t, port);
      running.send(request('/slow'));
      await asked.promise;
      const stopped = stop(10_000);
      await assert.rejects(RawClient.connect(t, port), /ECONNREFUSED/);
      going.resolve();
      assert.match(await running.untilClosed(), /connection: close\r\n.*done \/slow$/is);
      await idle.untilClosed();
      await stopped;
    });

    it('stops: streams continue until the grace time ends, then they are cut', async (t) => {
      const reason = deferred<unknown>();
      const written = deferred();
      const { port, stop } = await serving(t, () =>
        Promise.resolve(
          stream(async (sink) => {
            await sink.write(Buffer.from('begun'));
            await sink.flush();
            sink.signal.addEventListener('abort', () => reason.resolve(sink.signal.reason));
            written.resolve();
            await reason.promise;
            sink.signal.throwIfAborted();
          }),
        ),
      );
      const client = await RawClient.connect(t, port);
      client.send(request('/'));
      await client.until((came) => came.includes('begun'));
      await written.promise;
      const began = performance.now();
      await stop(300);
      assert.ok(performance.now() - began >= 290);
      assert.equal(((await reason.promise) as Error).name, 'StoppedError');
      assert.ok(!(await client.untilClosed()).endsWith('0\r\n\r\n'));
    });
  });
}
