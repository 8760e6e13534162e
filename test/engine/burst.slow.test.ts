import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { whyNoUws, type EngineName } from '../support/engine/engines.ts';
import { request } from '../support/engine/raw.ts';
import { childServer, logged } from '../support/process/child-server.ts';

const METER = pathToFileURL(join(import.meta.dirname, '../support/process/loop-hold.mjs')).href;
const REQUESTS = 10_000;
const BURSTS = 5;
/** The longest turn of the event loop, in CPU time, beside a burst: the median of BURSTS. Milliseconds. */
const MOST_MS = 15;

/** Asks on another connection until `done` says so. Resolves with the longest time of an answer in milliseconds. */
async function longestWait(url: URL, done: () => boolean): Promise<number> {
  let longest = 0;
  while (!done()) {
    const begin = performance.now();
    await (await fetch(new URL('/livez', url))).text();
    longest = Math.max(longest, performance.now() - begin);
  }
  return longest;
}

/** Counts the answers on a connection whose answers are short. Keeps none, so that it computes little itself. */
function answersOn(client: Socket): () => number {
  let count = 0;
  let rest = '';
  client.setEncoding('latin1').on('data', (data: string) => {
    const parts = (rest + data).split('HTTP/1.1 200 ');
    count += parts.length - 1;
    rest = parts.at(-1)?.slice(-12) ?? '';
  });
  return () => count;
}

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`${engine}: ${REQUESTS} pipelined requests hold the event loop for at most ${MOST_MS} ms at a time`, async (t) => {
    if (engine === 'uws' && whyNoUws() !== null) {
      t.skip(whyNoUws() ?? '');
      return;
    }
    const server = await childServer(t, {
      SAMPLE: 'off',
      HTTP_ENGINE: engine,
      NODE_OPTIONS: `--import ${METER}`,
    });
    const held = async () => {
      process.kill(server.pid, 'SIGUSR2');
      return (await logged(server, 'held')).longest ?? Infinity;
    };
    const turns: number[] = [];
    const waits: number[] = [];
    await held();
    for (let n = 0; n < BURSTS; n++) {
      const client = connect(Number(server.url.port), '127.0.0.1');
      client.on('error', () => undefined); // a reset closes it, too
      const closed = new Promise((resolve) => client.on('close', resolve));
      const answers = answersOn(client);
      client.write(request('/livez').repeat(REQUESTS - 1) + request('/livez', ['Connection: close']));
      let isOver = false;
      const others = longestWait(server.url, () => isOver);
      await closed;
      isOver = true;
      // uWebSockets.js closes a connection on which a request comes before the one before it is answered.
      if (engine === 'node') assert.equal(answers(), REQUESTS);
      waits.push(await others);
      turns.push(await held());
    }
    const inMs = (times: number[]) => times.map((ms) => ms.toFixed(1)).join(', ');
    t.diagnostic(`longest turns ${inMs(turns)} ms of CPU; longest waits of another client ${inMs(waits)} ms`);
    const median = turns.toSorted((a, b) => a - b)[Math.floor(BURSTS / 2)] ?? Infinity;
    assert.ok(median <= MOST_MS, `the event loop was held for ${inMs(turns)} ms`);
  });
