import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveWith, whyNoUws, type EngineName } from '../support/engine/engines.ts';
import { content, readSlowly } from '../support/engine/slow-reader.ts';

/** More than the kernel's buffers hold on a loopback connection (4 MB to send, at most 6 MB to receive). */
const BYTES = 6_000_000;
const READERS = process.env.LONG === '1' ? 200 : 40;

for (const name of ['uws', 'node'] satisfies EngineName[])
  test(`${READERS} slow readers of one body get every byte right from ${name}`, async (t) => {
    if (name === 'uws' && whyNoUws() !== null) {
      t.skip(whyNoUws() ?? '');
      return;
    }
    const body = { kind: 'bytes', bytes: content(BYTES) } as const;
    const { port, errors } = await serveWith(t, name, () =>
      Promise.resolve({ status: 200, headers: {}, body }),
    );
    const asked = { port, path: '/', coding: 'identity' } as const;
    const pace = { everyBytes: 500_000, stallMs: 100 };
    const readings = await Promise.all(Array.from({ length: READERS }, () => readSlowly(asked, pace)));
    for (const reading of readings) assert.deepEqual(reading, { right: BYTES, wrongAt: null, whole: true });
    assert.deepEqual(errors, []);
  });
