import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';
import { samples } from '../support/telemetry/metrics.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { childServer, type ChildServer } from '../support/process/child-server.ts';
import { freePorts } from '../support/ports.ts';
import { ask, http2Session } from '../support/engine/http2.ts';
import { settingsOf } from '../support/faults/ops.ts';
import { startProxy } from '../support/faults/proxies.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn } from '../support/process/server.ts';

/** The fewest requests of a restart of both servers, and how many are on their way at any time. */
const REQUESTS = 600;
const AT_ONCE = 2;
/** After how many requests a client connects anew: nginx ends a connection after 1,000, and a request that is on its way then fails. */
const OF_CONNECTION = 200;
/** After how many failures a client gives up. */
const MANY = 20;
/** Spellings of a path that a proxy or the server may take for /metrics. */
const METRICS = [
  ...['/metrics', '/metrics/', '/metrics?x=1', '/%6detrics', '//metrics', '/./metrics'],
  ...['/items/../metrics', '/metrics;x', '/metrics%2f', '/%2fmetrics', '/METRICS'],
];

/** Two servers on one store, with the settings of docs/ops/sluice.env. Without keys, since no request here has one. */
async function twoServers(t: TestContext) {
  const settings = {
    ...settingsOf('docs/ops/sluice.env'),
    API_KEYS_FILE: '',
    DATA_DIR: await temporaryFolder(t),
  };
  const ports = await freePorts(2);
  const start = (port: number) => childServer(t, { ...settings, MONGODB_URI: '', PORT: String(port) });
  const servers: [port: number, server: ChildServer][] = [];
  for (const port of ports) servers.push([port, await start(port)]);
  const restartAll = async (): Promise<void> => {
    for (const [port, server] of servers) {
      assert.equal(await server.end('SIGTERM'), 0);
      await start(port);
    }
  };
  return { ports, restartAll };
}

describe('proxies as docs/production.md sets them up', { concurrency: true }, () => {
  for (const name of ['nginx', 'haproxy'] as const) {
    test(`${name}: no request fails while two servers are restarted one after the other`, async (t) => {
      const { ports, restartAll } = await twoServers(t);
      const proxy = await startProxy(t, name, ports);
      if (!proxy) return;
      const { tlsPort, ca } = proxy;
      let restarted = false;
      let sent = 0;
      const failed: string[] = [];
      const client = async (): Promise<void> => {
        let session = http2Session(t, tlsPort, ca);
        for (let own = 1; (!restarted || sent < REQUESTS) && failed.length < MANY; own++) {
          if (own % OF_CONNECTION === 0) {
            session.close();
            session = http2Session(t, tlsPort, ca);
          }
          const n = sent++;
          const isWrite = n % 5 === 0;
          const body = isWrite ? JSON.stringify({ name: 'Ann', email: `ann${n}@example.com` }) : undefined;
          const path = isWrite ? '/api/users' : '/items?limit=1';
          try {
            const { status } = await ask(session, path, { 'content-type': 'application/json' }, body);
            if (status !== (isWrite ? 201 : 200)) failed.push(`${path} ${status}`);
          } catch (error) {
            failed.push(`${path} ${String(error)}`);
          }
        }
        session.close();
      };
      const restarting = restartAll().finally(() => (restarted = true));
      await Promise.all([restarting, ...Array.from({ length: AT_ONCE }, client)]);
      t.diagnostic(`${sent} requests, ${failed.length} failed`);
      assert.deepEqual(failed, []);
    });

    test(`${name}: TLS, HTTP/2, streams unbuffered, codings, long URLs and bodies are the server's, no metrics`, async (t) => {
      const server = await serverOn(t, {
        MONGODB_URI: '',
        TRUSTED_PROXIES: 'loopback',
        STREAM_GRACE: '10 ms',
      });
      await server.insert(
        catalogue(2500, 'string').map(({ document }) => ({ ...document, text: 'x'.repeat(8000) })),
      );
      const proxy = await startProxy(t, name, [new URL(server.url).port]);
      if (!proxy) return;
      const direct = await (await server.get('/items/stream')).text();
      const session = http2Session(t, proxy.tlsPort, proxy.ca);

      const whole = await ask(session, '/items/stream');
      assert.equal(session.alpnProtocol, 'h2');
      assert.equal(whole.headers['content-encoding'], undefined);
      assert.equal(whole.text, direct);
      const coded = await ask(session, '/items?limit=20', { 'accept-encoding': 'br' });
      assert.equal(coded.headers['content-encoding'], 'br');

      // One stream waits while another goes through whole. A proxy that reads ahead would by then have taken both.
      const waiting = session.request({ ':path': '/items/stream' });
      await once(waiting, 'response');
      assert.equal((await ask(session, '/items/stream')).text, direct);
      const open = async () => (await samples(server.url)).get('sluice_streams_open') ?? NaN;
      while ((await open()) > 1); // what is whole may be counted for a moment
      assert.equal(await open(), 1);
      waiting.close();

      const long = await ask(session, `/items?cursor=${'a'.repeat(12_000)}`);
      assert.match(long.text, /"code":"invalid-cursor"/);
      const json = { 'content-type': 'application/json' };
      const largest = JSON.stringify({ name: 'x'.repeat(1024 * 1024 - 11) });
      assert.equal(largest.length, 1024 * 1024);
      assert.match((await ask(session, '/api/users', json, largest)).text, /"code":"invalid-body"/);
      const larger = await ask(session, '/api/users', json, `${largest} `);
      assert.match(larger.text, /"code":"body-too-large"/);

      for (const path of METRICS) {
        const { status, text } = await ask(session, path);
        assert.equal(status, 404, path);
        assert.doesNotMatch(text, /sluice_/, path);
      }
      const plain = await fetch(`http://127.0.0.1:${proxy.redirectPort}/items?limit=1`, {
        redirect: 'manual',
      });
      assert.equal(plain.status, 301);
      assert.match(plain.headers.get('location') ?? '', /^https:\/\/127\.0\.0\.1.*\/items\?limit=1$/);
    });
  }
});
