import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { loading } from '../support/load/loading.ts';
import { listening } from '../support/ports.ts';
import { temporaryFolder } from '../support/directory.ts';
import { startCollector } from '../support/telemetry/collector.ts';
import { serverOn } from '../support/process/server.ts';

const ROWS = 300;
const SHORT = ['--for', '1s', '--ramp', '0s'];

test('a load of pages, streams and followers is counted and proved', async (t) => {
  const server = await serverOn(t, { STREAM_LIMIT: 'off' });
  await server.insert(
    Array.from({ length: ROWS }, (_, i) => ({ _id: `i${i}`, category: i % 2 ? 'toys' : 'books', price: i })),
  );
  const readers = '--pages 50/s --pullers 2 --slow 1@1kB/s --stalled 1 --followers 3'.split(' ');
  const { code, result, said } = await loading([server.url, ...readers, ...SHORT]);
  assert.ok(result, said);
  assert.deepEqual(result.verdict.reasons, []);
  assert.equal(code, 0);
  const [steady] = result.phases;
  assert.equal(steady?.kind, 'steady');
  const pages = result.series.reduce((sum, { goodPages }) => sum + goodPages, 0);
  assert.ok(pages > 0 && pages <= 50 * (steady.to - steady.from + 0.1), `${pages} pages`);
  assert.equal(result.options.model, 'open');
  assert.deepEqual(
    result.options.queries.map(({ query }) => query.replace(/category=.*/, 'category')),
    ['/items?limit=50', 'walk:/items?limit=50', ...Array<string>(2).fill('/items?limit=50&category')],
  );
  const [first, second, slow, stalled] = result.pullers;
  for (const full of [first, second]) {
    assert.equal(full?.proof, 'proved');
    assert.ok(full.whole > 0);
    assert.equal(full.provedRows % ROWS, 0);
  }
  assert.equal(slow?.kind, 'slow');
  assert.equal(stalled?.kind, 'stalled');
  assert.equal(result.followers?.open, 3);
  assert.equal(result.target.rateLimit?.requests, 60_000);
  assert.equal(result.target.resources[0]?.rows, ROWS);
  assert.ok((result.series[0]?.server?.memory ?? 0) > 0 || result.series.length < 3);
  assert.match(result.slowest[0]?.requestId ?? '', /^[\w-]{36}$/);
});

test('with --trace the slowest requests are named with traces that the server has sent', async (t) => {
  const collector = await startCollector(t);
  const server = await serverOn(t, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  await server.insert([{ _id: 'a', category: 'toys', price: 1 }]);
  const words = [server.url, '--pages', '20/s', '--pullers', '1', ...SHORT];
  const untraced = await loading(words);
  assert.ok(untraced.result?.slowest.every(({ traceId }) => traceId === null));
  const { result, said } = await loading([...words, '--trace']);
  const ids = (result?.slowest ?? []).map(({ traceId }) => traceId ?? '');
  assert.ok(ids.length > 0, said);
  assert.match(said, /, trace [0-9a-f]{32}\n/);
  await server.close();
  const sent = new Set(collector.spans.map(({ trace }) => trace));
  assert.deepEqual(
    ids.filter((id) => !sent.has(id)),
    [],
  );
});

test('refusals are counted apart, and are a reason for exit code 1 unless they are expected', async (t) => {
  const server = await serverOn(t, { RATE_LIMIT: '20/h' });
  await server.insert([{ _id: 'a', category: 'toys', price: 1 }]);
  const words = [server.url, '--pages', 'max', '--connections', '2', '--query', '/items', ...SHORT];
  const { code, result, said } = await loading(words);
  assert.equal(code, 1);
  assert.match(said, /the rate limit of the server is 20 requests in 3600 s/);
  const [steady] = result?.phases ?? [];
  assert.ok((steady?.counts.refused429 ?? 0) > 0);
  assert.ok((steady?.counts.ok ?? 100) < 20);
  assert.match(result?.verdict.reasons.join() ?? '', /429; the rate limit is 20 requests in 3600 s/);
  assert.match(result?.verdict.notes.join() ?? '', /a closed model/);
});

test('a report and a comparison with an earlier run are written', async (t) => {
  const server = await serverOn(t, {});
  await server.insert([{ _id: 'a', category: 'toys', price: 1 }]);
  const directory = await temporaryFolder(t);
  const old = join(directory, 'old.json');
  const report = join(directory, 'report.html');
  const words = [server.url, '--query', '/items', '--pages', '20/s', ...SHORT];
  const { result } = await loading(words);
  await writeFile(old, JSON.stringify(result));
  const compared = await loading([...words, '--compare', old, '--report', report]);
  assert.equal(compared.code, 0, compared.said);
  assert.match(compared.said, /^pages per second: .* before, .* now \(.*\): (better|same|worse)$/m);
  assert.match(await readFile(report, 'utf8'), /<!doctype html>[^]*Compared with the run of/);
  const wrong = await loading([...words, '--compare', report]);
  assert.deepEqual([wrong.code, wrong.result], [1, null]);
  assert.match(wrong.said, /--compare: .*report\.html is not what --json of this version writes/);
});

test('a load does not begin without a server, without its key, or on another server', async (t) => {
  const unreachable = await loading(['http://127.0.0.1:1', ...SHORT]);
  assert.deepEqual([unreachable.code, unreachable.result], [1, null]);
  assert.match(unreachable.said, /cannot reach http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/);
  const port = await listening(
    t,
    createServer((_, response) => response.end('hello')),
  );
  const stranger = await loading([`http://127.0.0.1:${port}`, ...SHORT]);
  assert.match(stranger.said, /is not a sluice server: its \/readyz answered 200/);
});
