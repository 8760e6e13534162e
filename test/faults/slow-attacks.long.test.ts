import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { childServer } from '../support/process/child-server.ts';
import { program } from '../support/process/programs.ts';

const SECONDS = 30;
const CONNECTIONS = 1_000;
/** The interval between normal requests. Milliseconds. */
const EVERY_MS = 50;

/** The attacks of slowhttptest, with options that keep each one going longer than it runs. */
const ATTACKS: readonly (readonly [name: string, path: string, ...options: string[]])[] = [
  ['slow heads', '/items', '-H', '-i', '5', '-x', '24'],
  ['slow bodies', '/api/users', '-B', '-i', '5', '-x', '24', '-s', '8192', '-f', 'application/json'],
  ['slow readers', '/items/stream', '-X', '-n', '5', '-w', '512', '-y', '1024', '-z', '32', '-k', '1'],
];

for (const [name, path, ...options] of ATTACKS)
  test(`beside ${CONNECTIONS} connections of ${name} every normal request is served`, async (t) => {
    const found = program(t, ['slowhttptest'], []);
    if (found === null) return;
    const server = await childServer(t, {
      MONGODB_URI: '',
      SAMPLE: 'auto',
      RATE_LIMIT: 'off',
      STREAM_LIMIT: 'off',
      STALL_TIMEOUT: '10 s',
    });
    const load = ['-c', String(CONNECTIONS), '-r', '300', '-l', String(SECONDS), '-p', '3', '-v', '0'];
    const attack = spawn(found, [...options, ...load, '-u', new URL(path, server.url).href], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: (SECONDS + 10) * 1000, // it waits for connections that neither side closes
    });
    attack.stdout.resume();
    const over = once(attack, 'exit');
    const times: number[] = [];
    while (attack.exitCode === null && attack.signalCode === null) {
      const begun = performance.now();
      // Each on a new connection, because a kept one does not test new clients.
      const response = await fetch(new URL('/items?limit=20', server.url), {
        headers: { connection: 'close' },
      });
      assert.equal(response.status, 200);
      assert.equal(((await response.json()) as { data: unknown[] }).data.length, 20);
      times.push(performance.now() - begun);
      await pause(EVERY_MS);
    }
    await over;
    times.sort((a, b) => a - b);
    t.diagnostic(`${times.length} requests, all served; longest ${times.at(-1)?.toFixed(0) ?? ''} ms`);
    assert.ok(times.length > SECONDS);
    assert.equal(await server.end('SIGTERM'), 0);
  });
