import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { childServer } from '../support/process/child-server.ts';
import { run } from '../support/process/commands.ts';
import { startCutter } from '../support/faults/cutter.ts';
import { freePort } from '../support/ports.ts';
import { folder, INSTANT, runPullOf } from '../support/pull/pulling.ts';

const ROWS = process.env.LONG ? 1_000_000 : 20_000;
const TIMES = process.env.LONG ? 20 : 3;

test(`a pull writes the whole set although the server is killed ${TIMES} times and the network cut ${TIMES} times`, async (t) => {
  const directory = await folder(t);
  const settings = { DATA_DIR: join(directory, 'data'), SAMPLE: 'off', LOG_LEVEL: 'info', MONGODB_URI: '' };
  await run(['import', '--generate', String(ROWS)], settings);
  // All servers use this port. A port picked anew could be blocked for a minute by its closed connections.
  const port = String(await freePort());
  let server = await childServer(t, { ...settings, PORT: port });
  const uncut = await runPullOf([`${server.url.href}items/stream`, '-o', join(directory, 'uncut')]);
  assert.equal(uncut.code, 0, uncut.text);

  const cutter = await startCutter(t, server.url.href);
  const bytes = Number(/([\d,]+) bytes/.exec(uncut.text)?.[1]?.replaceAll(',', ''));
  let [cuts, kills] = [0, 0];
  const restart: { under: Promise<void> | null } = { under: null };
  // Each connection is cut after some of the rows. After every other cut, the server is killed and restarted.
  cutter.nextAfter = () => {
    if (restart.under !== null || cuts >= 2 * TIMES) return Infinity;
    cuts++;
    if (cuts % 2 === 0 && kills < TIMES) {
      kills++;
      restart.under = (async () => {
        await server.end('SIGKILL');
        server = await childServer(t, { ...settings, PORT: port });
        restart.under = null;
      })();
    }
    return Math.floor((bytes / (2 * TIMES)) * (0.5 + Math.random()));
  };
  const began = performance.now();
  const file = join(directory, 'pulled');
  const { code, text } = await runPullOf(
    [`${cutter.url}/items/stream`, '-o', file, '--compression', 'none'],
    {
      clock: {
        ...INSTANT,
        sleep: async () => {
          await restart.under;
          await nextTurn();
        },
      },
    },
  );
  await restart.under;
  assert.equal(code, 0, text);
  assert.deepEqual([cuts >= 2 * TIMES, kills], [true, TIMES], text);
  const proof = (said: string) => /proved (.*CRC-32 \w+)/.exec(said)?.[1];
  assert.equal(proof(text), proof(uncut.text));
  assert.equal(await crcOf(file), await crcOf(join(directory, 'uncut')), 'byte for byte');
  if (process.env.LONG)
    t.diagnostic(
      `${ROWS} rows through ${cuts} cuts and ${kills} kills in ${Math.round(performance.now() - began)} ms`,
    );
});

async function crcOf(file: string): Promise<number> {
  let crc = 0;
  for await (const bytes of createReadStream(file)) crc = crc32(bytes as Buffer, crc);
  return crc;
}
