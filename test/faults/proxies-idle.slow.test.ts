import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { SEED } from '../support/seed.ts';
import { randomFrom } from '../support/store/random-collection.ts';
import { startProxy } from '../support/faults/proxies.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { serverOn } from '../support/process/server.ts';

const LONG = process.env.LONG === '1';
/** Requests through each proxy, and how many connections they come over. */
const REQUESTS = LONG ? 20_000 : 600;
const AT_ONCE = LONG ? 800 : 150;
/** KEEP_ALIVE of the server, and how long the proxy keeps idle connections: as far apart as 75 s and 60 s, but shorter. */
const KEEP_ALIVE_MS = 8_000;
const PROXY_MS = 6_000;
/** Requests of one client come around the moment at which the proxy, and then the server, closes an idle connection. */
const ODD_MS = [4_000, 9_000] as const;

/** The samples with shorter times, and without what asks again: a proxy that pools and does not retry. */
const CHANGES = {
  envoy: (sample: string) =>
    sample
      .replace('idle_timeout: 60s', `idle_timeout: ${PROXY_MS / 1000}s`)
      .replace(/ *retry_policy: .*\n/, ''),
  haproxy: (sample: string) =>
    sample
      .replace(/retry-on .*\n/, 'retries 0\n')
      .replace('check inter 1s fall 2 rise 1 pool-purge-delay 5s', `pool-purge-delay ${PROXY_MS / 1000}s`), // a check may time out
  nginx: (sample: string) =>
    sample
      .replace(/keepalive_timeout 60s;/, `keepalive_timeout ${PROXY_MS / 1000}s;`)
      .replace('proxy_pass', 'proxy_next_upstream off;\n    proxy_pass'),
  caddy: (sample: string) =>
    sample
      .replace('keepalive 60s', `keepalive ${PROXY_MS / 1000}s`)
      .replace(/\s*(lb_try_duration|health_\w+) .*/g, ''), // a check may time out
} as const;

/** The status of a PATCH, which no proxy may send twice: the server answers 405. Rejects when the connection breaks. */
async function statusOf(port: number): Promise<number> {
  const asked = httpRequest({ agent: false, port, host: '127.0.0.1', method: 'PATCH', path: '/items' });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  await once(answer, 'end');
  return answer.statusCode ?? 0;
}

describe('idle connections of a proxy that pools them and does not retry', { concurrency: true }, () => {
  for (const engine of ['uws', 'node'] as const)
    for (const name of ['envoy', 'haproxy', 'nginx', 'caddy'] as const)
      test(`${name} before ${engine}: no request at odd intervals fails`, async (t) => {
        const server = await serverOn(t, {
          MONGODB_URI: '',
          HTTP_ENGINE: engine,
          KEEP_ALIVE: `${KEEP_ALIVE_MS} ms`,
          RATE_LIMIT: 'off',
        });
        await server.insert(catalogue(10, 'string').map(({ document }) => document));
        const proxy = await startProxy(t, name, [new URL(server.url).port], CHANGES[name]);
        if (!proxy) return;
        const random = randomFrom(SEED);
        const [least, most] = ODD_MS;
        const failed: (string | number)[] = [];
        let sent = 0;
        const client = async (): Promise<void> => {
          while (sent++ < REQUESTS) {
            try {
              const status = await statusOf(proxy.port);
              if (status !== 405) failed.push(status);
            } catch (error) {
              failed.push(String(error));
            }
            await pause(least + random() * (most - least));
          }
        };
        await Promise.all(Array.from({ length: AT_ONCE }, client));
        t.diagnostic(`${sent - AT_ONCE} requests, ${failed.length} failed`);
        assert.deepEqual(failed, []);
      });
});
