import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { childServer } from './support/child-server.ts';

const SECONDS = 60;
/** To see how much it can do, and to warm up. */
const CALIBRATION_SECONDS = 10;
const AT_ONCE = 32;
const TIMES = 10;
const TICK_MS = 10;
/** More connections this process does not open; a server that refuses early never lets it come so far. */
const MOST_OPEN = 9_000;
const RECOVERY_MS = 5_000;
/** The most that one page may cost: all its rows, compressed. */
const PATH = '/items?limit=1000&sort=price_asc';
const MIB = 2 ** 20;

/** What came: `whole`, `refused` with Retry-After, or what went wrong. */
function ask(url: URL, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const asking = request(url, { agent, headers: { 'accept-encoding': 'br' } }, (answer) => {
      const { statusCode = 0, headers } = answer;
      answer.on('error', (error) => resolve(`cut: ${error.message}`));
      answer.on('end', () => {
        if (statusCode === 200) resolve('whole');
        else if ([429, 503].includes(statusCode) && headers['retry-after'] !== undefined) resolve('refused');
        else resolve(`status ${statusCode}`);
      });
      answer.resume();
    });
    // A server closes a connection that nobody uses at the moment when somebody does: whoever asks, asks again (RFC 9112, 9.3.1).
    asking.on('error', (error) => resolve(asking.reusedSocket ? ask(url, agent) : `lost: ${error.message}`));
    asking.end();
  });
}

test(`${TIMES} times what the server can do, for ${SECONDS} s: it refuses, keeps its memory, and is itself again within ${RECOVERY_MS / 1000} s`, async (t) => {
  const server = await childServer(t, {
    MONGODB_URI: '',
    SAMPLE: 'auto',
    RATE_LIMIT: 'off',
    MAX_LOOP_DELAY: '200 ms',
  });
  const url = new URL(PATH, server.url);
  const agent = new Agent({ keepAlive: true, maxFreeSockets: Infinity });
  t.after(() => agent.destroy());
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;

  let answered = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (; seconds() < CALIBRATION_SECONDS; answered++) assert.equal(await ask(url, agent), 'whole');
    }),
  );
  const capacity = answered / CALIBRATION_SECONDS;
  const before = server.rss();

  const came = new Map<string, number>();
  let [sent, open, highest] = [0, 0, 0];
  const one = async () => {
    open++;
    const what = await ask(url, agent);
    open--;
    came.set(what, (came.get(what) ?? 0) + 1);
  };
  for (const from = seconds(); seconds() < from + SECONDS;) {
    for (const due = (seconds() - from) * TIMES * capacity; sent < due && open < MOST_OPEN; sent++)
      void one();
    highest = Math.max(highest, server.rss());
    await pause(TICK_MS);
  }
  const over = performance.now();
  while ((await ask(url, agent)) !== 'whole') await pause(TICK_MS);
  const recovered = performance.now() - over;
  while (open > 0) await pause(TICK_MS);

  const { whole = 0, refused = 0, ...wrong } = Object.fromEntries(came);
  t.diagnostic(
    `${capacity.toFixed(0)} requests/s at most; then ${(sent / SECONDS).toFixed(0)}/s: ${whole} served, ${refused} refused; memory ` +
      `${(before / MIB).toFixed(0)} to ${(highest / MIB).toFixed(0)} MiB; serves again after ${recovered.toFixed(0)} ms`,
  );
  assert.deepEqual(wrong, {});
  assert.ok(refused > 0 && whole > 0);
  assert.ok(sent > 0.9 * SECONDS * TIMES * capacity, 'as much as it was to be');
  assert.ok(highest <= 1.2 * before, `${highest} of ${before} bytes`);
  assert.ok(recovered <= RECOVERY_MS);
  assert.equal(await server.end('SIGTERM'), 0);
});
