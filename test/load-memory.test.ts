import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { LoadResult } from '../src/load/result.ts';
import { catalogue } from './support/catalogue.ts';
import { serverOn } from './support/server.ts';

const PULLERS = 200;
const MIB = 1024 * 1024;

test('the memory of a load test does not grow with the bytes that its pullers read', async (t) => {
  const server = await serverOn(t, { STREAM_LIMIT: 'off', MAX_STREAMS: '1000', MAX_LOOP_DELAY: '60 s' });
  await server.insert(catalogue(20_000).map(({ document }) => document));
  const words = [
    'load',
    server.url,
    '--pullers',
    String(PULLERS),
    '--for',
    '12s',
    '--ramp',
    '1s',
    '--json',
    '-',
  ];
  // A process of its own: this one has the memory of the server.
  const run = promisify(execFile)(process.execPath, ['--import', 'tsx', 'src/process/cli.ts', ...words], {
    maxBuffer: 64 * MIB,
  });
  const { stdout } = await run.catch((error: unknown) => error as { stdout: string });
  const { series, verdict } = JSON.parse(stdout) as LoadResult;
  const bytes = series.reduce((sum, { bytes }) => sum + bytes, 0);
  assert.ok(bytes > 100 * MIB, `${bytes} bytes`);
  assert.deepEqual(verdict.reasons, []);
  const memory = series.map(({ client }) => client.memory / MIB);
  const [half, end] = [Math.max(...memory.slice(3, 7)), Math.max(...memory.slice(-4))];
  t.diagnostic(`${Math.round(half)}, then ${Math.round(end)} MiB; ${Math.round(bytes / MIB)} MiB read`);
  assert.ok(end < half + 40, `${memory.map(Math.round).join(', ')} MiB`);
});
