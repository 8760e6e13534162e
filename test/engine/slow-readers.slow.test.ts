import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Reply, Request } from '../../src/engine/edge.ts';
import { compress, type Coding } from '../../src/pipeline/compress.ts';
import { serveWith, stream, whyNoUws, type EngineName } from '../support/engine/engines.ts';
import { content, readSlowly, writeContent, type Reading } from '../support/engine/slow-reader.ts';

/** More than the kernel's buffers hold on a loopback connection (4 MB to send, at most 6 MB to receive). */
const BYTES = 6_000_000;
const LONG = process.env.LONG === '1';

/** `/identity`, `/gzip`, `/br`: the content as a stream. `/bytes`: as one body. */
async function serveContent({ path, signal }: Request): Promise<Reply> {
  await Promise.resolve();
  signal.throwIfAborted();
  const coding = path.slice(1);
  if (coding === 'bytes') return { status: 200, headers: {}, body: { kind: 'bytes', bytes: content(BYTES) } };
  return stream(async (sink) => {
    const target = coding === 'identity' ? sink : compress(coding as Coding, sink);
    await writeContent(target, BYTES);
    if (target !== sink) await target.end();
  });
}

function slowReaders(name: EngineName): void {
  for (const [coding, readers] of [
    ['identity', LONG ? 200 : 60],
    ['bytes', LONG ? 200 : 40],
    ['gzip', LONG ? 200 : 12],
    ['br', LONG ? 200 : 12],
  ] as const) {
    it(`${readers} slow readers of ${coding} get every byte right`, async (t) => {
      const { port, errors } = await serveWith(t, name, serveContent);
      const readings = await Promise.all(
        Array.from({ length: readers }, () =>
          readSlowly(
            { port, path: `/${coding}`, coding: coding === 'bytes' ? 'identity' : coding },
            { everyBytes: 500_000, stallMs: 100 },
          ),
        ),
      );
      const perfect: Reading = { right: BYTES, wrongAt: null, whole: true };
      assert.deepEqual(
        readings.filter(({ wrongAt }) => wrongAt !== null),
        [],
      );
      for (const reading of readings) assert.deepEqual(reading, perfect);
      assert.deepEqual(errors, []);
    });
  }
}

describe('on uWebSockets.js', { skip: whyNoUws() ?? false }, () => slowReaders('uws'));
describe('on node:http', () => slowReaders('node'));
