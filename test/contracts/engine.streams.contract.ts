import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deferred, RawClient, request } from '../support/engine/raw.ts';
import { stream, type Serving } from '../support/engine/engines.ts';

/** Streams: when they are sent, and who learns that a client left. */
export function streamContract(serving: Serving): void {
  describe('a stream', () => {
    it('that is empty, short or longer than a chunk arrives as written', async (t) => {
      const { port } = await serving(t, ({ path }) =>
        Promise.resolve(
          stream(async (sink) => {
            await sink.write(Buffer.alloc(Number(path.slice(1)), 'x'));
          }),
        ),
      );
      for (const length of [0, 1, 15_000, 16_000, 16_384, 100_000]) {
        const response = await fetch(`http://127.0.0.1:${port}/${length}`);
        assert.equal((await response.text()).length, length);
      }
    });

    it('is sent when it is flushed while its source is slow', async (t) => {
      const next = [deferred(), deferred()];
      const { port } = await serving(t, () =>
        Promise.resolve(
          stream(async (sink) => {
            await sink.write(Buffer.from('first'));
            await sink.flush();
            await next[0]?.promise;
            await sink.write(Buffer.from('second'));
            await sink.flush();
            await next[1]?.promise;
          }),
        ),
      );
      const client = await RawClient.connect(t, port);
      client.send(request('/'));
      await client.until((came) => came.includes('first'));
      next[0]?.resolve();
      await client.until((came) => came.includes('second'));
      assert.ok(!client.text.endsWith('0\r\n\r\n'));
      next[1]?.resolve();
      await client.until((came) => came.endsWith('0\r\n\r\n'));
    });

    for (const how of ['FIN', 'RST'] as const) {
      it(`hears within 250 ms that its client left (${how}), and rejects its writer with the reason`, async (t) => {
        let aborted = deferred<number>();
        let failed = deferred<unknown>();
        const { port, errors } = await serving(t, () =>
          Promise.resolve(
            stream(async (sink) => {
              sink.signal.addEventListener('abort', () => aborted.resolve(performance.now()));
              try {
                for (;;) {
                  await sink.write(Buffer.alloc(1000));
                  await new Promise((resolve) => setImmediate(resolve));
                }
              } catch (error) {
                failed.resolve(error);
                throw error;
              }
            }),
          ),
        );
        const times: number[] = [];
        for (let leaves = 0; leaves < 3; leaves++) {
          aborted = deferred();
          failed = deferred();
          const client = await RawClient.connect(t, port);
          await client.send(request('/')).until((came) => came.length > 10_000);
          const left = performance.now();
          if (how === 'FIN') client.socket.destroy();
          else client.socket.resetAndDestroy();
          times.push((await aborted.promise) - left);
          assert.equal(((await failed.promise) as Error).name, 'ClientGoneError');
        }
        assert.ok(Math.min(...times) < 250, times.join()); // of the quickest: this machine may be busy
        assert.deepEqual(errors, [], 'a client that leaves is no error');
      });
    }

    it('whose client left before it began runs once, into an aborted sink', async (t) => {
      const asked = deferred();
      const gone = deferred();
      const ran = deferred<boolean>();
      const { port } = await serving(t, async ({ signal }) => {
        asked.resolve();
        signal.addEventListener('abort', () => gone.resolve());
        await gone.promise;
        return stream((sink) => {
          ran.resolve(sink.signal.aborted);
          return Promise.resolve();
        });
      });
      const client = await RawClient.connect(t, port);
      client.send(request('/'));
      await asked.promise;
      client.socket.destroy();
      assert.equal(await ran.promise, true);
    });
  });
}
