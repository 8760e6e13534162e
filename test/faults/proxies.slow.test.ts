import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { catalogue } from '../support/resources/catalogue.ts';
import { allOf, type Case } from '../support/engine/corpus/case.ts';
import { CORPUS } from '../support/engine/corpus/corpus.ts';
import { startProxy } from '../support/faults/proxies.ts';
import { RawClient } from '../support/engine/raw.ts';
import { serverOn } from '../support/process/server.ts';

/** The time after which a proxy has forwarded all that it will of an incomplete request. */
const ENOUGH_MS = 1_000;

const ATTACKS = process.env.LONG ? CORPUS : CORPUS.filter((one) => one.class === 'smuggling');

for (const name of ['nginx', 'haproxy'] as const)
  test(`${name} with its sample configuration: cuts seen, clients known, nothing smuggled`, async (t) => {
    const seen: { path: string; client: string; forwarded: string | undefined }[] = [];
    const server = await serverOn(
      t,
      { MONGODB_URI: '', TRUSTED_PROXIES: 'loopback', STREAM_GRACE: '10 ms' },
      {
        tap: (serve) => async (request) => {
          const reply = await serve(request);
          seen.push({
            path: request.path,
            client: request.notes.client,
            forwarded: request.headers['x-forwarded-for'],
          });
          return reply;
        },
      },
    );
    const rows = catalogue(6000, 'string').map(({ document }) => ({ ...document, text: 'x'.repeat(8000) }));
    await server.insert(rows);
    const proxy = await startProxy(t, name, [new URL(server.url).port]);
    if (!proxy) return;
    const { port } = proxy;
    const proxied = `http://127.0.0.1:${port}`;

    await (await fetch(`${proxied}/livez`, { headers: { 'x-forwarded-for': '198.51.100.1' } })).text();
    const { client } = seen.find(({ path }) => path === '/livez') ?? {};
    assert.equal(client, '127.0.0.1', 'forwarded headers of a client are not believed');

    // The proxy adds X-Forwarded-For to each request that it knows. A request without it is one that the proxy did
    // not see.
    seen.splice(0);
    await Promise.all(ATTACKS.map((one) => sendThrough(t, port, one)));
    for (let i = 0; i < 50; i++) {
      const { instance } = (await (await fetch(`${proxied}/items/probe-${i}`)).json()) as {
        instance: string;
      };
      assert.equal(instance, `/items/probe-${i}`, 'each request has its own answer');
    }
    assert.ok(seen.length > ATTACKS.length / 10, 'valid requests passed');
    assert.deepEqual(
      seen.filter(({ path, forwarded }) => forwarded !== '127.0.0.1' && path !== '/readyz'),
      [],
    );

    // A waiting reader while the server stops. The proxy must not turn the cut into a clean end.
    const reader = await RawClient.connect(t, port);
    await reader
      .send('GET /items/stream HTTP/1.1\r\nHost: localhost\r\n\r\n')
      .until((came) => came.includes('row-'));
    reader.socket.pause();
    await server.close();
    reader.socket.resume();
    assert.ok(!(await reader.untilClosed()).endsWith('0\r\n\r\n'));
  });

/** Sends a case to a proxy and waits for the first result: an answer, the end of the connection, or ENOUGH_MS. */
async function sendThrough(t: TestContext, port: number, one: Case): Promise<void> {
  const client = await RawClient.connect(t, port);
  const answered = client.send(allOf(one)).until((came) => came.includes('HTTP/1.1 '));
  const enough = new AbortController();
  await Promise.race([
    answered.catch(() => 'closed without an answer'),
    pause(ENOUGH_MS, undefined, { signal: enough.signal }).catch(() => 'answered before'),
  ]);
  enough.abort();
  client.socket.destroy();
}
