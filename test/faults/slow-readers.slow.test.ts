import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { Document } from '../../src/store/values/bson.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { startProgram } from '../support/process/child-program.ts';
import { serverOn, type EngineName } from '../support/process/server.ts';
import type { Run } from '../support/engine/slow-readers-child.ts';
import { stalledStreams } from '../support/telemetry/metrics.ts';

const READERS = process.env.LONG ? 200 : 24;
const RUNS = Number(process.env.RUNS ?? (process.env.LONG ? 20 : 1));
/** The minimum size of a stream. Even compressed it exceeds the kernel's buffers. */
const BYTES = process.env.LONG ? 8_000_000 : 4_000_000;
const ROWS = 12_000;

/** Rows with half of their bytes incompressible. */
function rows(): Document[] {
  const half = Math.ceil(BYTES / ROWS / 2);
  const fill = 'x'.repeat(half);
  let state = 1;
  return catalogue(ROWS).map(({ document }) => {
    const noise = Buffer.alloc(half);
    for (let at = 0; at < half; at++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      noise[at] = 32 + ((state >>> 16) % 95);
    }
    return { ...document, noise: noise.toString(), fill };
  });
}

/** The readers, in their own process: their output by lines, and a function that starts them. */
function readers(t: TestContext, url: string) {
  const program = startProgram(t, 'engine/slow-readers-child.ts', url, READERS, RUNS);
  const lines = program.lines()[Symbol.asyncIterator]();
  return {
    begin: () => program.child.stdin.write('begin\n'),
    said: async (): Promise<unknown> => {
      const line = await lines.next();
      assert.ok(line.done !== true, 'the readers ended early');
      return JSON.parse(line.value);
    },
  };
}

describe('slow readers', () => {
  for (const engine of ['uws', 'node'] satisfies EngineName[])
    test(`${READERS} readers with random stalls all get the right bytes behind ${engine}, ${RUNS} times`, async (t) => {
      const settings = { MONGODB_URI: '', HTTP_ENGINE: engine, STREAM_LIMIT: 'off', RATE_LIMIT: 'off' };
      const server = await serverOn(t, settings);
      await server.insert(rows());
      const { begin, said } = readers(t, server.url);
      assert.ok(((await said()) as number) > BYTES);
      for (let run = 1; run <= RUNS; run++) {
        // Only compressed streams fit into the kernel.
        const streams = await stalledStreams(server.url, (open) => open > 0.75 * READERS);
        assert.ok(server.slots.taken <= READERS + 1, 'a waiting stream holds its encoder, and no batch');
        begin();
        const { ms, ...came } = (await said()) as Run;
        assert.deepEqual(came, { readers: READERS, wrong: 0, first: null });
        t.diagnostic(
          `run ${run}: ${streams} waited for their readers, all were right ${Math.round(ms / 1000)} s later`,
        );
      }
    });
});
