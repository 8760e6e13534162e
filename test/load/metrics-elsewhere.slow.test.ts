import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findRate } from '../../src/load/find.ts';
import { loading } from '../support/load/loading.ts';
import { serverOn } from '../support/process/server.ts';
import { empty } from '../../src/http/reply.ts';

const PAGES = ['--pages', '20/s', '--for', '3s', '--ramp', '0s', '--query', '/items'];

test('the side of the server is read from --metrics where the tested URL has none', async (t) => {
  const options = {};
  const server = await serverOn(t, options, {
    tap: (serve) => async (request) =>
      request.path === '/metrics' && request.query === '' && request.headers.host?.startsWith('localhost')
        ? empty(404)
        : serve(request),
  });
  await server.insert([{ _id: 'a', category: 'x', price: 1 }]);
  const proxied = server.url.replace('127.0.0.1', 'localhost');
  const without = await loading([proxied, ...PAGES]);
  assert.deepEqual(without.result?.target.metrics, { reachable: false, reason: '/metrics answered 404' });
  for (const metrics of [server.url, `${server.url}/metrics`]) {
    const { code, result } = await loading([proxied, ...PAGES, '--metrics', metrics]);
    assert.equal(code, 0);
    assert.deepEqual(result?.target.metrics, { reachable: true, reason: null });
    assert.ok(result.phases.some(({ server: side }) => (side?.memory ?? 0) > 0));
  }
  const gone = await loading([proxied, ...PAGES, '--metrics', 'http://127.0.0.1:1']);
  assert.match(gone.result?.target.metrics.reason ?? '', /^cannot reach/);
  for (const wrong of [
    ['--metrics', 'x'],
    ['--metrics-key-file', 'x'],
  ])
    await assert.rejects(loading([proxied, ...wrong]), { name: 'UsageError' });
});

test('one noisy step is no bound: a rate counts as broken when it breaks twice', async () => {
  const condition = { quantile: 'p99', belowMs: 50, text: 'p99<50ms' } as const;
  const { signal } = new AbortController();
  const search = async (holds: (rate: number, time: number) => boolean) => {
    const times = new Map<number, number>();
    const steps: number[] = [];
    const found = await findRate(
      condition,
      100,
      (rate) => {
        steps.push(rate);
        times.set(rate, (times.get(rate) ?? 0) + 1);
        const held = holds(rate, times.get(rate) ?? 0);
        return Promise.resolve({ held, broke: held ? null : 'slow' });
      },
      signal,
    );
    return { found, steps };
  };
  const noisy = await search((rate, time) => rate <= 400 && !(rate === 100 && time === 1));
  assert.deepEqual(noisy.steps.slice(0, 6), [100, 100, 200, 400, 800, 800]);
  assert.equal(noisy.found.held, 400);
  assert.ok((noisy.found.broke ?? 0) > 400 && (noisy.found.broke ?? 0) < 450);
});
