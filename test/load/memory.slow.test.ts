import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoadResult } from '../../src/load/result.ts';
import { sluice } from '../support/process/commands.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { serverOn } from '../support/process/server.ts';

const PULLERS = 200;
const MIB = 1024 * 1024;
/** How long the load lasts. A slow machine reads too little in a short time to measure growth. Seconds. */
const TIMES = [10, 40, 120];
/** What is read in the second half of the time before growth can be measured. MiB. */
const ENOUGH = 60;

test('the memory of a load test does not grow with the bytes that its pullers read', async (t) => {
  const server = await serverOn(t, { STREAM_LIMIT: 'off', MAX_STREAMS: '1000', MAX_LOOP_DELAY: '60 s' });
  await server.insert(catalogue(20_000).map(({ document }) => document));
  let read = 0;
  let grown = Infinity;
  for (const seconds of TIMES) {
    const words = `--pullers ${PULLERS} --for ${seconds}s --ramp 1s --json -`.split(' ');
    // A process of its own: this one has the memory of the server.
    const { stdout, said } = await sluice(['load', server.url, ...words], {});
    const { series, verdict } = JSON.parse(stdout) as LoadResult;
    assert.deepEqual(verdict.reasons, [], said);
    const half = Math.floor(series.length / 2);
    read = series.slice(half).reduce((sum, { bytes }) => sum + bytes, 0) / MIB;
    const memory = series.map(({ client }) => client.memory / MIB);
    grown = Math.max(...memory.slice(-4)) - Math.max(...memory.slice(0, half));
    t.diagnostic(`${Math.round(grown)} MiB more after the next ${Math.round(read)} MiB in ${seconds} s`);
    if (read > ENOUGH) break;
  }
  assert.ok(read > ENOUGH, `${read} MiB are too little to measure growth`);
  assert.ok(grown < read / 2 + 20, `${grown} MiB more after ${read} MiB`);
});
