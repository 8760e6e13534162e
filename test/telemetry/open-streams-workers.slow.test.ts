import assert from 'node:assert/strict';
import { test } from 'node:test';
import { begun } from '../support/answers.ts';
import { childServer, logged } from '../support/process/child-server.ts';
import type { EngineName } from '../support/process/server.ts';
import { samples } from '../support/telemetry/metrics.ts';
import { untilStreams } from '../support/telemetry/streams.ts';

const STREAMS = 8;
/** The kernel spreads new connections over the workers. Not for what is cut: fetch takes any end of such an answer for a clean one. */
const ALONE = { headers: { connection: 'close' } };

for (const HTTP_ENGINE of ['uws', 'node'] satisfies EngineName[])
  test(`any of two workers on ${HTTP_ENGINE} lists the streams of both, and cuts them`, async (t) => {
    const server = await childServer(t, { MONGODB_URI: '', WORKERS: '2', HTTP_ENGINE, SAMPLE: 'auto' });
    await logged(server, 'listening');
    const at = (path: string) => new URL(path, server.url);
    const ask = () => fetch(at('/metrics/streams'), ALONE);
    const rests = await Promise.all(
      Array.from({ length: STREAMS }, () => begun(fetch(at('/items/stream?follow=true&fields=id')))),
    );
    const { data } = await untilStreams(ask, (streams) => streams.length === STREAMS);
    assert.equal(new Set(data.map(({ id }) => id)).size, STREAMS);
    for (let asked = 0; asked < 6; asked++)
      assert.equal((await untilStreams(ask, () => true)).data.length, STREAMS, 'any worker lists all');
    const cuts = await Promise.all(
      data.map(async ({ id }) => {
        const { status } = await fetch(at(`/metrics/streams/${id}`), { ...ALONE, method: 'DELETE' });
        return status;
      }),
    );
    assert.deepEqual(new Set(cuts), new Set([204]));
    for (const rest of rests) await assert.rejects(rest(), /terminated/);
    await untilStreams(ask, (streams) => streams.length === 0);
    assert.equal((await samples(server.url)).get('sluice_streams_open'), 0);
    const gone = await fetch(at(`/metrics/streams/${data[0]?.id}`), { ...ALONE, method: 'DELETE' });
    assert.equal(gone.status, 404);
    const pids = new Set<number>();
    for await (const { msg, pid } of server.log) {
      if (msg === 'an operator cut a stream') pids.add(pid);
      if (pids.size === 2) break;
    }
    assert.equal(pids.size, 2, 'both workers were asked for cuts');
  });
