import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { childServer } from '../support/process/child-server.ts';

const SECONDS = 60;
/** The time in which capacity is measured and the server warms up. */
const CALIBRATION_SECONDS = 20;
const AT_ONCE = 32;
const TIMES = 10;
const TICK_MS = 10;
/** The largest number of waiting requests. A slow test process on a busy machine says nothing about the server. */
const MOST_OPEN = 2_000;
const RECOVERY_MS = 5_000;
/** The most expensive page: all its rows, compressed. */
const PATH = '/items?limit=1000&sort=price_asc';
const MIB = 2 ** 20;

/** Sends requests to one URL whether answers come or not, as many clients would, and counts how they end. */
function floodOf(url: URL) {
  const agent = new Agent({ keepAlive: true });
  const came = new Map<string, number>();
  const flood = {
    came,
    /** The number of requests without an answer so far. */
    open: 0,
    send(): void {
      flood.open++;
      const ended = (how: string) => {
        flood.open--;
        came.set(how, (came.get(how) ?? 0) + 1);
      };
      const asking = get(url, { agent, headers: { 'accept-encoding': 'br' } }, (answer) => {
        const { statusCode: status = 0, headers } = answer;
        const isRefused = [429, 503].includes(status) && 'retry-after' in headers;
        const how = status === 200 ? 'whole' : isRefused ? 'refused' : `status ${status}`;
        answer.resume().on('close', () => ended(answer.complete ? how : 'lost'));
      });
      asking.on('error', () => {
        if (asking.reusedSocket) {
          flood.open--; // a server may close an idle connection at the moment when it is used (RFC 9112, 9.3.1)
          flood.send();
        } else ended('lost');
      });
    },
    close: () => agent.destroy(),
  };
  return flood;
}

test(`${TIMES} times what the server can do, for ${SECONDS} s: it refuses, keeps its memory, and is itself again within ${RECOVERY_MS / 1000} s`, async (t) => {
  const server = await childServer(t, {
    MONGODB_URI: '',
    SAMPLE: 'auto',
    RATE_LIMIT: 'off',
    MAX_LOOP_DELAY: '200 ms',
    MAX_WAIT: '2 s',
  });
  const url = new URL(PATH, server.url);
  const flood = floodOf(url);
  t.after(() => flood.close());
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  const until = async (isIt: () => boolean) => {
    while (!isIt()) await pause(TICK_MS);
  };

  let before = 0;
  while (seconds() < CALIBRATION_SECONDS) {
    while (flood.open < AT_ONCE) flood.send();
    before = Math.max(before, server.rss());
    await pause(1);
  }
  await until(() => flood.open === 0);
  const capacity = (flood.came.get('whole') ?? 0) / seconds();
  assert.equal(flood.came.size, 1, 'nothing is refused');
  flood.came.clear();

  let sent = 0;
  let highest = 0;
  for (const from = seconds(); seconds() < from + SECONDS;) {
    const due = (seconds() - from) * TIMES * capacity;
    for (; sent < due && flood.open < MOST_OPEN; sent++) flood.send();
    highest = Math.max(highest, server.rss());
    await pause(TICK_MS);
  }
  const over = performance.now();
  while ((await fetch(url, { headers: { connection: 'close' } })).status !== 200) await pause(TICK_MS);
  const recovered = performance.now() - over;
  await until(() => flood.open === 0);

  const { whole = 0, refused = 0, ...wrong } = Object.fromEntries(flood.came);
  t.diagnostic(
    `${capacity.toFixed(0)} requests/s at most; then ${(sent / SECONDS).toFixed(0)}/s: ${whole} served, ${refused} refused; memory at most ` +
      `${(before / MIB).toFixed(0)} to ${(highest / MIB).toFixed(0)} MiB; it serves again after ${recovered.toFixed(0)} ms`,
  );
  assert.deepEqual(wrong, {});
  assert.ok(refused > 0 && whole > 0);
  assert.ok(sent > 0.9 * SECONDS * TIMES * capacity, 'the load was as high as intended');
  assert.ok(highest <= 1.2 * before, `${highest} of ${before} bytes`);
  assert.ok(recovered <= RECOVERY_MS);
  assert.equal(await server.end('SIGTERM'), 0);
});
