import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import * as zlib from 'node:zlib';
import { codings, compress, compressBytes, type Coding } from '../../src/pipeline/compress.ts';
import { Compressor } from '../../src/pipeline/compressor.ts';
import type { Sink } from '../../src/pipeline/sink.ts';
import { randomFrom } from '../support/store/random-collection.ts';
import { SEED } from '../support/seed.ts';
import { content, writeContent } from '../support/engine/slow-reader.ts';

type Decode = (bytes: Uint8Array, done: (error: Error | null, result: Buffer) => void) => void;
const { zstdDecompress } = zlib as unknown as { zstdDecompress: Decode };
const DECODE: Readonly<Record<Coding, Decode>> = {
  br: zlib.brotliDecompress,
  gzip: zlib.gunzip,
  zstd: zstdDecompress,
};

function decode(coding: Coding, bytes: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    DECODE[coding](bytes, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

/** The text that a reader can decode from the bytes so far, without an end. */
async function decodeSoFar(coding: Coding, bytes: Uint8Array): Promise<string> {
  const zstd = zlib as unknown as { createZstdDecompress: () => zlib.Gunzip };
  const decoder = {
    br: () => zlib.createBrotliDecompress(),
    gzip: () => zlib.createGunzip(),
    zstd: () => zstd.createZstdDecompress(),
  }[coding]();
  const chunks: Buffer[] = [];
  decoder.on('data', (chunk: Buffer) => chunks.push(chunk));
  await new Promise((resolve) => decoder.write(bytes, resolve));
  await turns();
  decoder.destroy();
  return Buffer.concat(chunks).toString();
}

async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** A sink that keeps its bytes and whose reader can be stopped. */
class Collector implements Sink {
  readonly chunkBytes = 1000;
  readonly chunks: Buffer[] = [];
  readonly events: unknown[] = [];
  private readonly controller = new AbortController();
  private blocked: Promise<void> | null = null;
  private arrival: () => void = () => undefined;
  unblock: () => void = () => undefined;

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }

  block(): void {
    this.blocked = new Promise((resolve) => (this.unblock = resolve));
  }

  /** Resolves when the next bytes come. */
  arrived(): Promise<void> {
    return new Promise((resolve) => (this.arrival = resolve));
  }

  write(chunk: Uint8Array): void | Promise<void> {
    this.signal.throwIfAborted();
    this.chunks.push(Buffer.from(chunk));
    this.arrival();
    if (this.blocked !== null) return this.blocked;
  }

  flush(): void {
    this.events.push('flush');
  }

  end(): void {
    this.events.push('end');
  }

  fail(error: unknown): void {
    this.events.push(error);
    this.controller.abort(error);
  }
}

/** A sink that asks to wait after each write, and throws when its writer does not. */
class Waiting extends Collector {
  #isWaiting = false;

  override write(chunk: Uint8Array): Promise<void> {
    assert.ok(!this.#isWaiting, 'it was asked to wait');
    this.#isWaiting = true;
    void super.write(chunk);
    return new Promise((resolve) =>
      setImmediate(() => {
        this.#isWaiting = false;
        resolve();
      }),
    );
  }

  override flush(): void {
    assert.ok(!this.#isWaiting, 'it was asked to wait');
    super.flush();
  }
}

/** The timers that are set from now on, which only the test runs. */
function handClock(t: TestContext) {
  const due: { action: () => void; ms: number }[] = [];
  t.mock.method(globalThis, 'setTimeout', (action: () => void, ms: number) => {
    const timer = { action, ms };
    due.push(timer);
    return timer;
  });
  t.mock.method(globalThis, 'clearTimeout', (timer: (typeof due)[number]) => {
    if (due.includes(timer)) due.splice(due.indexOf(timer), 1);
  });
  return due;
}

describe('the codings', () => {
  it('are br, gzip and, where this Node has it, zstd, in this order', () => {
    const expected = 'createZstdCompress' in zlib ? ['br', 'gzip', 'zstd'] : ['br', 'gzip'];
    assert.deepEqual(codings, expected);
    if (expected.length === 2) assert.throws(() => compress('zstd', new Collector()), /not available/);
  });

  for (const coding of codings) {
    it(`${coding} decodes to the same body and makes it smaller`, async () => {
      for (const body of [
        Buffer.alloc(0),
        Buffer.from('{"id":1}'),
        Buffer.from('{"price":12.5}\n'.repeat(2000)),
      ]) {
        const compressed = await compressBytes(coding, body);
        assert.deepEqual(await decode(coding, compressed), body);
        if (body.length > 1000) assert.ok(compressed.length < body.length / 5);
      }
    });
  }
});

for (const coding of codings) {
  describe(`a stream in ${coding}`, () => {
    it('decodes to the same bytes, in chunks of all sizes from reused memory', async () => {
      for (const length of [0, 1, 65_535, 65_536, 65_537, 1_000_000]) {
        const sink = new Collector();
        const compressor = compress(coding, sink);
        await writeContent(compressor, length);
        await compressor.end();
        assert.ok((await decode(coding, sink.bytes)).equals(content(length)), `${length} bytes`);
        assert.ok(!sink.events.includes('end'), 'the creator of the sink ends it');
      }
    });

    it('is sent in full chunks, and a partial chunk 200 ms after its first byte', async (t) => {
      const sink = new Collector();
      const due = handClock(t);
      const compressor = compress(coding, sink);
      const text = content(200_000); // it hardly compresses
      await compressor.write(text);
      const sizes = () => sink.chunks.map(({ length }) => length);
      assert.ok(sizes().length > 50, 'a batch of 64 KiB is compressed without a flush');
      assert.deepEqual(new Set(sizes()), new Set([sink.chunkBytes]));
      assert.deepEqual(sink.events, [], 'nothing is flushed early');
      const before = sink.chunks.length;
      due[0]?.action();
      while (sink.events.length === 0) await turns();
      const last = sizes().slice(before);
      assert.deepEqual(new Set(last.slice(0, -1)), new Set([sink.chunkBytes]));
      assert.equal(await decodeSoFar(coding, sink.bytes), text.toString());
      compressor.fail(new Error('enough'));
    });

    it('can be decoded up to the last write 200 ms after the first byte, also during a flush, and after a flush', async (t) => {
      const sink = new Collector();
      const due = handClock(t);
      const compressor = compress(coding, sink);
      await compressor.write(Buffer.from('one '));
      await compressor.write(Buffer.from('two '));
      assert.deepEqual(
        due.map(({ ms }) => ms),
        [200],
      );
      due[0]?.action();
      await compressor.write(Buffer.from('three '));
      while (sink.events.length === 0) await turns();
      assert.equal(await decodeSoFar(coding, sink.bytes), 'one two ');
      assert.equal(due.length, 1, 'what came meanwhile has a timer of its own');
      due[0]?.action();
      while (sink.events.length === 1) await turns();
      assert.equal(await decodeSoFar(coding, sink.bytes), 'one two three ');
      assert.deepEqual(due, [], 'the timer has run');
      await compressor.write(Buffer.from('four'));
      await compressor.flush();
      while (sink.events.length === 2) await turns();
      assert.equal(await decodeSoFar(coding, sink.bytes), 'one two three four');
      assert.deepEqual(due, [], 'the timer is cancelled');
      compressor.fail(new Error('enough'));
    });

    it('makes its writer wait for a reader that takes nothing, with little memory', async () => {
      const sink = new Collector();
      sink.block();
      const compressor = compress(coding, sink);
      const all = content(1_000_000); // it hardly compresses
      let accepted = 0;
      const writing = (async () => {
        for (; accepted < all.length; accepted += 10_000) {
          await compressor.write(all.subarray(accepted, accepted + 10_000));
        }
        await compressor.end();
      })();
      await sink.arrived();
      for (let before = -1; before !== accepted;) {
        before = accepted;
        for (let i = 0; i < 4; i++) await compressBytes(coding, all); // queued behind it on the same threads
      }
      assert.ok(accepted <= 4 * 65_536, `${accepted} bytes were accepted`);
      assert.equal(sink.chunks.length, 1, 'nothing is written to a sink that asked to wait');
      sink.unblock();
      await writing;
      assert.ok((await decode(coding, sink.bytes)).equals(all));
    });

    it('waits for its sink after each write, however many flushes and timers come meanwhile', async (t) => {
      const random = randomFrom(SEED);
      const due = handClock(t);
      for (let turn = 0; turn < 8; turn++) {
        const sink = new Waiting();
        const compressor = compress(coding, sink);
        const all = content(200_000);
        for (let at = 0; at < all.length;) {
          const size = Math.floor(random() ** 3 * 80_000);
          const written = compressor.write(all.subarray(at, at + size));
          at += size;
          if (random() < 0.5) for (const { action } of due.splice(0)) action();
          await written;
          if (random() < 0.3) await compressor.flush();
        }
        await compressor.end();
        assert.ok((await decode(coding, sink.bytes)).equals(all));
      }
    });

    it('fails its sink and never ends it when it fails', async (t) => {
      const sink = new Collector();
      const due = handClock(t);
      const compressor = compress(coding, sink);
      await compressor.write(Buffer.from('something'));
      const error = new Error('no more rows');
      compressor.fail(error);
      assert.deepEqual(sink.events, [error]);
      assert.deepEqual(due, []);
      await turns();
      assert.deepEqual(sink.chunks, []);
      assert.throws(() => void compressor.write(Buffer.from('x')), error);
      await assert.rejects(Promise.resolve(compressor.end()), error);
    });

    it('settles all pending calls when its sink is aborted, whatever they wait for', async (t) => {
      const due = handClock(t);
      const calls: Readonly<Record<string, (to: Sink, sink: Collector) => unknown[] | Promise<unknown[]>>> = {
        'a reader that takes nothing': async (to, sink) => {
          sink.block();
          const writing = (async () => {
            for (;;) await to.write(content(10_000));
          })();
          await sink.arrived();
          return [writing];
        },
        'a batch that is being compressed': (to) => [
          to.write(content(65_536)),
          to.write(content(65_536)),
          to.flush(),
        ],
        'the end': async (to) => {
          await to.write(Buffer.from('something'));
          return [to.end()];
        },
      };
      for (const [what, call] of Object.entries(calls)) {
        const sink = new Collector();
        const gone = new Error('client gone');
        const pending = await call(compress(coding, sink), sink);
        const settled = Promise.allSettled(pending);
        sink.fail(gone);
        sink.unblock();
        assert.equal((await settled).at(-1)?.status, 'rejected', what);
        assert.deepEqual(due, [], what);
      }
    });

    it('rejects with the error of its sink', async () => {
      const sink = new Collector();
      const full = new Error('disk full');
      sink.write = () => Promise.reject(full);
      const compressor = compress(coding, sink);
      const writing = (async () => {
        for (;;) await compressor.write(content(10_000));
      })();
      await assert.rejects(writing, full);
      await assert.rejects(Promise.resolve(compressor.end()), full);
    });

    it('refuses writes after its end', async () => {
      const compressor = compress(coding, new Collector());
      await compressor.end();
      assert.throws(() => void compressor.write(Buffer.from('x')), TypeError);
    });
  });
}

describe('the memory of a compressor', () => {
  it('is released at once when it fails, ends or its sink is aborted, not at the next garbage collection', async () => {
    const endings: readonly ((compressor: Compressor, sink: Collector) => unknown)[] = [
      (compressor) => {
        compressor.fail(new Error('enough'));
      },
      (compressor) => compressor.end(),
      (_, sink) => {
        sink.fail(new Error('gone'));
      },
    ];
    for (const end of endings) {
      const sink = new Collector();
      const transform = zlib.createGzip({ flush: zlib.constants.Z_SYNC_FLUSH });
      const compressor = new Compressor(transform, sink);
      await compressor.write(Buffer.from('row'));
      assert.equal(transform.destroyed, false);
      await end(compressor, sink);
      assert.equal(transform.destroyed, true);
    }
  });
});
