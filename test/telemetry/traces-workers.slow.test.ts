import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOf } from '../support/answers.ts';
import { freePort } from '../support/ports.ts';
import { childServer } from '../support/process/child-server.ts';
import { startCollector } from '../support/telemetry/collector.ts';

test('each worker of the built program sends its traces, before it stops', async (t) => {
  const collector = await startCollector(t);
  const settings = { MONGODB_URI: '', WORKERS: '2', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const server = await childServer(t, { ...settings, OTEL_SERVICE_NAME: 'shop' });
  const workers = () => new Set(collector.spans.map(({ of }) => of['service.instance.id']));
  // The kernel divides connections among the workers.
  for (let n = 0; n < 200; n++)
    await textOf(fetch(new URL('/items?limit=1', server.url), { headers: { connection: 'close' } }));
  assert.equal(await server.end('SIGTERM'), 0);
  assert.equal(collector.spans.filter(({ name }) => name === 'GET /items').length, 200);
  assert.ok(collector.spans.every(({ of }) => of['service.name'] === 'shop'));
  assert.equal(workers().size, 2);
});

test('a collector that is away does not keep the program from its end', async (t) => {
  const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${await freePort()}`;
  const server = await childServer(t, { MONGODB_URI: '', OTEL_EXPORTER_OTLP_ENDPOINT, DRAIN_DELAY: '0 s' });
  await textOf(fetch(new URL('/items?limit=1', server.url)));
  const began = performance.now();
  assert.equal(await server.end('SIGTERM'), 0);
  const ms = performance.now() - began;
  assert.ok(ms < 60_000, `${ms} ms`);
  t.diagnostic(`stopped in ${Math.round(ms)} ms`);
});
