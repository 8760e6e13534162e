import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deferred, RawClient, request } from '../support/engine/raw.ts';
import { stream, text, type Serving } from '../support/engine/engines.ts';

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
