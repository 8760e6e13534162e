import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoadResult } from '../../src/load/result.ts';
import { sluice } from '../support/process/commands.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { serverOn } from '../support/process/server.ts';

const PULLERS = 200;
const MIB = 1024 * 1024;

test('the memory of a load test does not grow with the bytes that its pullers read', async (t) => {
  const server = await serverOn(t, { STREAM_LIMIT: 'off', MAX_STREAMS: '1000', MAX_LOOP_DELAY: '60 s' });
  await server.insert(catalogue(20_000).map(({ document }) => document));
  const words = `--pullers ${PULLERS} --for 20s --ramp 1s --json -`.split(' ');
  // A process of its own: this one has the memory of the server.
  const { stdout } = await sluice(['load', server.url, ...words], {});
  const { series, verdict } = JSON.parse(stdout) as LoadResult;
  assert.deepEqual(verdict.reasons, []);
  const half = Math.floor(series.length / 2);
  const read = series.slice(half).reduce((sum, { bytes }) => sum + bytes, 0) / MIB;
  const memory = series.map(({ client }) => client.memory / MIB);
  const grown = Math.max(...memory.slice(-4)) - Math.max(...memory.slice(0, half));
  t.diagnostic(`${Math.round(grown)} MiB more after the next ${Math.round(read)} MiB`);
  assert.ok(read > 60, 'too little was read to measure growth');
  assert.ok(grown < read / 2 + 20, `${memory.map(Math.round).join(', ')} MiB`);
});
