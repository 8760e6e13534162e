import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rawExchange, RawClient, request } from '../support/engine/raw.ts';
import { echo, text, type EngineName, type Serving } from '../support/engine/engines.ts';

/** Requests that are pipelined or too large. Malformed and ambiguous ones are in the corpus. */
export function hostileContract(serving: Serving, name: EngineName): void {
  describe('requests on one connection', () => {
    it('that are pipelined behind a slow one are never answered out of order', async (t) => {
      const { port } = await serving(t, async ({ path }) => {
        await new Promise((resolve) => setImmediate(resolve));
        return text(`<${path}>`);
      });
      const client = await RawClient.connect(t, port);
      client.send(request('/1') + request('/2') + request('/3', ['Connection: close']));
      const answers = (await client.untilClosed()).match(/<[^>]+>/g) ?? [];
      // uWebSockets.js closes the connection when a request arrives before the previous one is answered.
      assert.deepEqual(answers, name === 'uws' ? [] : ['</1>', '</2>', '</3>']);
    });
  });

  describe('a burst of requests on one connection', () => {
    it('lets other connections have their turns', async (t) => {
      let inTurn = 0;
      let most = 0;
      const { port } = await serving(t, ({ path }) => {
        if (inTurn === 0) setImmediate(() => (inTurn = 0));
        inTurn++;
        most = Math.max(most, inTurn);
        for (const end = performance.now() + 1; performance.now() < end;); // as long as a page takes
        return Promise.resolve(text(`<${path}>`));
      });
      const client = await RawClient.connect(t, port);
      const paths = Array.from({ length: 300 }, (_, i) => `/${i}`);
      client.send(paths.map((path) => request(path)).join('') + request('/last', ['Connection: close']));
      const answers = (await client.untilClosed()).match(/<\/\d+>/g) ?? [];
      // uWebSockets.js closes the connection when a request arrives before the previous one is answered.
      assert.equal(answers.length, name === 'uws' ? 0 : paths.length);
      assert.ok(most <= 32, `${most} requests began in one turn of the event loop`);
    });
  });

  describe('a request head', () => {
    it('of 15 KB is accepted, and of 17 KB is answered with 431', async (t) => {
      const { port } = await serving(t, echo);
      const client = await RawClient.connect(t, port);
      const value = 'x'.repeat(15_000);
      const came = await client.send(request('/', [`X-Long: ${value}`])).until((all) => all.endsWith('}'));
      assert.ok(came.includes(value));
      const refused = await rawExchange(t, port, request('/', [`X-Long: ${'x'.repeat(17_000)}`]));
      assert.match(refused, /^HTTP\/1.1 431 /);
    });
  });
}
