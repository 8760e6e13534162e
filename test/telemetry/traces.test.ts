import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import Module from 'node:module';
import { test, type TestContext } from 'node:test';
import { pino } from 'pino';
import { openTracer } from '../../src/telemetry/opentelemetry.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { logTo, untilLogged } from '../support/access/log-lines.ts';
import { begun, textOf } from '../support/answers.ts';
import { awaited, order, recordOf } from '../support/exports/exports.ts';
import { freePort } from '../support/ports.ts';
import { COMBINATIONS, serverOn, testServer } from '../support/process/server.ts';
import { untilStreams } from '../support/telemetry/streams.ts';
import { startCollector, type ReceivedSpan } from '../support/telemetry/collector.ts';

const ERROR = 2;
const SERVER = 2;
const CLIENT = 3;

/** A trace of a caller, which samples it or not. */
function newTrace(flags: '00' | '01' = '01') {
  const trace = randomBytes(16).toString('hex');
  const parent = randomBytes(8).toString('hex');
  return { trace, parent, headers: { traceparent: `00-${trace}-${parent}-${flags}` } };
}

/** The span of a request of this trace, and its parts. */
function requestOf(spans: readonly ReceivedSpan[], { trace, parent }: ReturnType<typeof newTrace>) {
  const own = spans.filter((span) => span.trace === trace);
  const [request, ...others] = own.filter((span) => span.parent === parent);
  if (!request) return assert.fail(`no span of ${trace} among ${spans.map(({ name }) => name).join(', ')}`);
  assert.deepEqual(others, []);
  return { request, own, parts: own.filter((span) => span.parent === request.id) };
}

async function tracedServer(t: TestContext, [store, engine]: (typeof COMBINATIONS)[number]) {
  const collector = await startCollector(t);
  const server = await testServer(t, store, engine, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  return server && { server, collector };
}

for (const kind of COMBINATIONS)
  test(`${kind.join(' behind ')}: spans of a request that its caller samples, and of no other`, async (t) => {
    const opened = await tracedServer(t, kind);
    if (!opened) return;
    const { server, collector } = opened;
    await server.insert([{ _id: 'hidden-id', category: 'hidden-value', price: 7 }]);
    const page = newTrace();
    const row = newTrace();
    const none = newTrace();
    const unsampled = newTrace('00');
    await textOf(server.get('/items?category=hidden-value', page.headers));
    await textOf(server.get('/items/hidden-id', row.headers));
    await server.get('/hidden-path', none.headers);
    await textOf(server.get('/items?category=hidden-value', unsampled.headers));
    await textOf(server.get('/readyz', newTrace().headers));
    await server.close();

    const { request, parts } = requestOf(collector.spans, page);
    assert.deepEqual([request.name, request.kind, request.status], ['GET /items', SERVER, 0]);
    const { 'sluice.request_id': id, 'http.response.body.size': bytes, ...facts } = request.facts;
    assert.match(String(id), /^[\w-]{36}$/);
    assert.ok(Number(bytes) > 0);
    assert.deepEqual(facts, {
      'http.request.method': 'GET',
      'http.route': '/items',
      'url.path': '/items',
      'url.scheme': 'http',
      'sluice.resource': 'items',
      'http.response.status_code': 200,
      'sluice.rows': 1,
    });
    assert.equal(request.of['service.name'], 'sluice');
    const read = parts.at(-1) ?? assert.fail('no read');
    assert.deepEqual([read.name, read.kind, read.status], ['read items', CLIENT, 0]);
    assert.deepEqual(read.facts, {
      'db.system.name': server.store.name,
      'db.collection.name': 'items',
      'db.operation.name': 'read',
      'db.response.returned_rows': 1,
    });
    assert.ok(request.start <= read.start && read.start <= read.end && read.end <= request.end);

    assert.equal(requestOf(collector.spans, row).request.facts['url.path'], '/items/{id}');
    const missing = requestOf(collector.spans, none).request;
    assert.deepEqual([missing.name, missing.facts['http.response.status_code']], ['GET', 404]);
    const traces = new Set(collector.spans.map(({ trace }) => trace));
    assert.deepEqual(traces, new Set([page.trace, row.trace, none.trace]));
    assert.doesNotMatch(Buffer.concat(collector.bytes).toString('latin1'), /hidden/);
  });

for (const kind of COMBINATIONS)
  test(`${kind.join(' behind ')}: a stream's reads and waits are its parts, and a cut one is an error`, async (t) => {
    const opened = await tracedServer(t, kind);
    if (!opened) return;
    const { server, collector } = opened;
    const text = 'x'.repeat(100_000);
    await server.insert(
      Array.from({ length: 300 }, (_, n) => ({ _id: `i${n}`, category: 'c', price: n, text })),
    );
    const whole = newTrace();
    const cut = newTrace();
    const headers = { 'accept-encoding': 'identity' };
    const rest = await begun(server.get('/items/stream', { ...headers, ...whole.headers }));
    await untilStreams(
      () => server.get('/metrics/streams'),
      (streams) => streams[0]?.state === 'waiting',
    );
    await rest();
    const left = new AbortController();
    await begun(
      fetch(`${server.url}/items/stream`, { headers: { ...headers, ...cut.headers }, signal: left.signal }),
    );
    left.abort();
    await server.close();

    const { request, parts } = requestOf(collector.spans, whole);
    assert.deepEqual([request.name, request.status], ['GET /items/stream', 0]);
    const named = (name: string) => parts.filter((part) => part.name === name);
    const rows = named('read items').map(({ facts }) => Number(facts['db.response.returned_rows']));
    assert.ok(rows.length > 1, 'a read for each batch');
    assert.equal(
      rows.reduce((sum, one) => sum + one, 0),
      300,
    );
    assert.ok(named('wait for the socket').length > 0);
    const broken = requestOf(collector.spans, cut).request;
    assert.deepEqual([broken.status, broken.facts['error.type']], [ERROR, 'cut-client']);
  });

for (const kind of COMBINATIONS)
  test(`${kind.join(' behind ')}: looks at the collection, and reads of its changes, are parts of a request`, async (t) => {
    const opened = await tracedServer(t, kind);
    if (!opened) return;
    const { server, collector } = opened;
    const cursor = (await server.get('/items/stream')).headers.get('changes-from') ?? assert.fail();
    await server.insert([{ _id: 'a', category: 'c', price: 1 }]);
    const poll = newTrace();
    await textOf(server.get(`/items/changes?since=${cursor}&wait=30`, poll.headers));
    await server.close();
    const { parts } = requestOf(collector.spans, poll);
    const factsOf = (name: string) => parts.find((one) => one.name === `${name} items`)?.facts ?? {};
    const common = { 'db.system.name': server.store.name, 'db.collection.name': 'items' };
    assert.deepEqual(factsOf('describe'), { ...common, 'db.operation.name': 'describe' });
    assert.deepEqual(factsOf('changes.lookUp'), {
      ...common,
      'db.operation.name': 'changes.lookUp',
      'db.response.returned_rows': 1,
    });
    const reads = parts.filter(({ name }) => name === 'changes.read items');
    assert.ok(reads.some(({ facts }) => facts['sluice.keys'] === 1));
    assert.ok(parts.every(({ status }) => status === 0));
  });

test('a span has at most 200 parts of a name, and counts the others, which cost no span', async (t) => {
  const collector = await startCollector(t);
  const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, samplesByParent: true };
  const tracer = openTracer(settings, pino({ enabled: false })) ?? assert.fail();
  const beginning = (name: string) => ({ name, kind: 'internal', facts: {} }) as const;
  const stream = tracer.begin(undefined, () => beginning('stream')) ?? assert.fail();
  stream.part(beginning('first')).end();
  for (let n = 0; n < 100_000; n++) {
    const read = stream.part(beginning('read'));
    read.part(beginning('part')).end();
    read.end();
  }
  stream.end();
  await tracer.close();
  const count = (name: string) => collector.spans.filter((one) => one.name === name).length;
  assert.deepEqual([count('stream'), count('first'), count('read'), count('part')], [1, 1, 200, 400]);
  const whole = collector.spans.find(({ name }) => name === 'stream');
  assert.equal(whole?.facts['sluice.parts_left_out'], 2 * 100_000 - 600);
});

test('an attempt at an export belongs to the trace of its order, also when it fails', async (t) => {
  const opened = await tracedServer(t, ['sqlite', 'node']);
  const { server, collector } = opened ?? assert.fail();
  await server.insert([{ _id: 'a', category: 'c', price: 1.5 }]);
  const whole = newTrace();
  const failing = newTrace();
  const unsampled = newTrace('00');
  for (const { headers } of [whole, unsampled])
    await awaited(server.url, (await order(server.url, { format: 'csv' }, headers)).id);
  const bad = { format: 'arrow', columns: 'id:text,price:integer', schema: 'strict' };
  const { id } = await order(server.url, bad, failing.headers);
  await awaited(server.url, id, ({ finishedAt }) => finishedAt !== undefined);
  await server.close();

  const ofOrder = requestOf(collector.spans, whole);
  const attempt = ofOrder.parts.find(({ name }) => name === 'export items') ?? assert.fail('no attempt');
  assert.deepEqual([attempt.status, attempt.facts['sluice.rows']], [0, 1]);
  const reads = ofOrder.own.filter(({ parent }) => parent === attempt.id).map(({ name }) => name);
  assert.ok(reads.includes('read items'), reads.join());
  const { parts } = requestOf(collector.spans, failing);
  const failed = parts.find(({ name }) => name === 'export items');
  assert.deepEqual([failed?.status, failed?.facts['error.type']], [ERROR, 'invalid-body']);
  assert.ok(!collector.spans.some(({ trace }) => trace === unsampled.trace));
});

test('an export keeps the trace of its order only on a server that sends traces', async (t) => {
  const collector = await startCollector(t);
  for (const [settings, isKept] of [
    [{}, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, true],
  ] as const) {
    const server = await serverOn(t, settings);
    const { headers, trace } = newTrace();
    const { id } = await order(server.url, { format: 'csv' }, headers);
    await awaited(server.url, id);
    assert.equal((await recordOf(server.store, id)).includes(trace), isKept);
    await server.close();
  }
});

test('a ratio samples as many traces of callers without one, and of a trace all or nothing', async (t) => {
  const ratio = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' };
  Object.assign(process.env, ratio);
  t.after(() => {
    delete process.env.OTEL_TRACES_SAMPLER;
    delete process.env.OTEL_TRACES_SAMPLER_ARG;
  });
  const collector = await startCollector(t);
  const server = await serverOn(t, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  for (let n = 0; n < 200; n++) await textOf(server.get('/items'));
  const followed = newTrace();
  await textOf(server.get('/items', followed.headers));
  await server.close();
  const own = collector.spans.filter(({ trace }) => trace !== followed.trace);
  const requests = own.filter(({ parent }) => parent === '');
  assert.ok(requests.length > 50 && requests.length < 150, String(requests.length)); // beyond 7 sigma
  const traces = new Set(requests.map(({ trace }) => trace));
  assert.ok(own.every(({ trace }) => traces.has(trace)));
  requestOf(collector.spans, followed); // its caller has decided
});

test('no key is in a span, and a refused request has one', async (t) => {
  const collector = await startCollector(t);
  const server = await keyedServer(t, 'sqlite', [{ name: 'all' }], [], {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  });
  const right = newTrace();
  const wrong = newTrace();
  await textOf(server.as('all', '/items?limit=1', { headers: right.headers }));
  const authorization = 'Bearer secret-of-nobody';
  await server.get('/items?key=secret-in-query', { authorization, ...wrong.headers });
  await server.close();
  requestOf(collector.spans, right);
  const { request } = requestOf(collector.spans, wrong);
  assert.deepEqual([request.facts['http.response.status_code'], request.status], [401, 0]);
  assert.doesNotMatch(Buffer.concat(collector.bytes).toString('latin1'), /secret/);
});

test('without a caller, OTEL_TRACES_SAMPLER decides', async (t) => {
  t.after(() => delete process.env.OTEL_TRACES_SAMPLER);
  for (const [sampler, sampled] of [
    ['parentbased_always_on', 1],
    ['parentbased_always_off', 0],
    ['always_off', 0],
  ] as const) {
    process.env.OTEL_TRACES_SAMPLER = sampler;
    const collector = await startCollector(t);
    const server = await serverOn(t, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await textOf(server.get('/items'));
    await server.close();
    const requests = collector.spans.filter(({ parent }) => parent === '');
    assert.equal(requests.length, sampled, sampler);
  }
});

test('a collector that is away breaks no request and no stop, and is logged once', async (t) => {
  Object.assign(process.env, { OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_EXPORTER_OTLP_TIMEOUT: '500' });
  t.after(() => {
    delete process.env.OTEL_BSP_SCHEDULE_DELAY;
    delete process.env.OTEL_EXPORTER_OTLP_TIMEOUT;
  });
  const lines: string[] = [];
  const url = `http://127.0.0.1:${await freePort()}`;
  const server = await serverOn(t, { OTEL_EXPORTER_OTLP_ENDPOINT: url }, { log: logTo(lines, 'warn') });
  for (let n = 0; n < 50; n++) await textOf(server.get('/items', newTrace().headers));
  await untilLogged(lines, /traces cannot be sent/);
  for (let n = 0; n < 50; n++) await textOf(server.get('/items', newTrace().headers));
  await server.close();
  assert.equal(lines.length, 1, lines.join(''));
});

test('without their packages no traces are sent, and the log has the command that installs them', async (t) => {
  type Resolving = Record<'_resolveFilename', (name: string, ...more: unknown[]) => string>;
  const modules = Module as unknown as Resolving;
  const resolve = modules._resolveFilename.bind(Module);
  t.mock.method(modules, '_resolveFilename', (name: string, ...more: unknown[]) => {
    if (!name.startsWith('@opentelemetry/')) return resolve(name, ...more);
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  });
  const collector = await startCollector(t);
  const lines: string[] = [];
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const server = await serverOn(t, endpoint, { log: logTo(lines, 'warn') });
  await textOf(server.get('/items', newTrace().headers));
  await server.close();
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /npm install @opentelemetry\/api @opentelemetry\/exporter-trace-otlp-proto /);
  assert.deepEqual(collector.spans, []);
});
