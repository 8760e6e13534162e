import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import * as zlib from 'node:zlib';
import { BrokenSource } from '../../src/import/row.ts';
import { openSource } from '../../src/import/source.ts';
import { temporaryFolder } from '../support/directory.ts';
import { inChunks } from '../support/import/import-reading.ts';
import { below, randomFrom } from '../support/store/random-collection.ts';
import { SEED } from '../support/seed.ts';

const { zstdCompressSync } = zlib as { zstdCompressSync?: (content: Buffer, options?: object) => Buffer };
const CHECKSUM_FLAG = 201; // ZSTD_c_checksumFlag
const NEVER = new AbortController().signal;
const LINES = Array.from({ length: 150 }, (_, n) => `${n},${Math.imul(n, 2_654_435_761) >>> 0},größe\n`);
/** Long enough for several blocks of zstd. */
const TEXT = Buffer.from(LINES.join('') + 'the same line again\n'.repeat(20_000));
/** The parts of a content: an empty one, a short one, the rest. */
const PARTS = [TEXT.subarray(0, 0), TEXT.subarray(0, 700), TEXT.subarray(700)];

/** A frame that readers skip (RFC 8878, 3.1.2). */
function skippable(length: number, number: number): Buffer {
  const frame = Buffer.alloc(8 + length, 0xa5);
  frame.writeUInt32LE(0x184d2a50 + number, 0);
  frame.writeUInt32LE(length, 4);
  return frame;
}

/** A member of gzip whose header has all that one can have (RFC 1952, 2.3). */
function longHeader(content: Buffer): Buffer {
  const plain = zlib.gzipSync(content);
  const header = Buffer.from([0x1f, 0x8b, 8, 0x1e, 0, 0, 0, 0, 0, 3, 5, 0, 1, 2, 3, 4, 5]);
  return Buffer.concat([header, Buffer.from('name\0comment\0'), Buffer.of(0, 0), plain.subarray(10)]);
}

interface Packed {
  readonly name: string;
  readonly bytes: Buffer;
  /** Bytes behind which the content may end: cut there, it is a whole file of fewer parts. */
  readonly ends: readonly number[];
  /** What may follow, as part of the file. */
  readonly padding?: Buffer;
}

/** Joins parts, of which those that are no padding end a file. */
function joined(name: string, parts: readonly Buffer[], padding?: Buffer): Packed {
  const ends = parts.map((_, n) => Buffer.concat(parts.slice(0, n + 1)).length);
  return { name, bytes: Buffer.concat(parts), ends, ...(padding && { padding }) };
}

function packedFiles(): Packed[] {
  const zeros = Buffer.alloc(3);
  const padded = PARTS.flatMap((part) => [zlib.gzipSync(part), zeros]);
  const files = [
    joined(
      'members.gz',
      PARTS.map((part) => zlib.gzipSync(part)),
      Buffer.alloc(512),
    ),
    joined('padded.gz', padded, zeros),
    joined('header.gz', PARTS.map(longHeader), zeros),
    joined('one.br', [
      zlib.brotliCompressSync(TEXT, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }),
    ]),
  ];
  if (!zstdCompressSync) return files;
  const frames = PARTS.map((part) => zstdCompressSync(part));
  const checked = PARTS.map((part) => zstdCompressSync(part, { params: { [CHECKSUM_FLAG]: 1 } }));
  const skipped = [skippable(4, 0), ...checked.flatMap((frame, n) => [frame, skippable(n * 9, n)])];
  const withSkippable = joined('skippable.zst', skipped, skippable(70_000, 1));
  return [
    ...files,
    joined('frames.zst', frames, skippable(0, 15)),
    { ...withSkippable, ends: withSkippable.ends.slice(1) }, // there is no frame before
    joined('fast.zst', [zstdCompressSync(TEXT, { params: { 100: -50 } })], skippable(1, 1)),
  ];
}

/** The content of bytes that come in chunks, through standard input or, for Brotli, a file. */
async function content(t: TestContext, { name }: Packed, bytes: Buffer, chunk = 65_536): Promise<Buffer> {
  const isNamed = name.endsWith('.br');
  const file = isNamed ? join(await temporaryFolder(t), name) : '-';
  if (isNamed) await writeFile(file, bytes);
  const source = await openSource(file, Readable.from(inChunks(bytes, chunk)), NEVER);
  const chunks: Buffer[] = [];
  for await (const one of source.bytes) chunks.push(one);
  return Buffer.concat(chunks);
}

for (const packed of packedFiles()) {
  const { name, bytes, ends, padding } = packed;

  test(`All parts of ${name} are read, whatever the chunks that they come in`, async (t) => {
    for (const chunk of [1, 2, 3, 7, 100, 4_099, 65_536, bytes.length])
      assert.ok((await content(t, packed, bytes, chunk)).equals(TEXT), `chunks of ${chunk} bytes`);
    if (padding) assert.ok((await content(t, packed, Buffer.concat([bytes, padding]))).equals(TEXT));
  });

  test(`A cut of ${name} is an error that names its byte, or a whole file of fewer parts`, async (t) => {
    const random = randomFrom(SEED);
    const near = [...ends, 0].flatMap((end) => Array.from({ length: 14 }, (_, n) => end + n - 7));
    const anywhere = Array.from({ length: 80 }, () => below(random, bytes.length));
    const cuts = [...near, ...anywhere].filter((cut) => cut >= 4 && cut < bytes.length);
    let whole = 0;
    for (const cut of cuts) {
      const outcome = await content(t, packed, bytes.subarray(0, cut), 1 + below(random, 3_000)).catch(
        (error: unknown) => error,
      );
      const isZero = name === 'padded.gz' && bytes.subarray(0, cut).at(-1) === 0 && !ends.includes(cut);
      if (ends.includes(cut) || (isZero && Buffer.isBuffer(outcome))) {
        assert.ok(Buffer.isBuffer(outcome) && TEXT.subarray(0, outcome.length).equals(outcome), `at ${cut}`);
        assert.ok([0, 700, TEXT.length].includes(outcome.length), `at ${cut}`);
        whole++;
      } else {
        assert.ok(outcome instanceof BrokenSource, `at ${cut}`);
        assert.match(outcome.message, new RegExp(`ends too early, at byte ${cut}$`));
      }
    }
    assert.ok(whole < cuts.length / 2 && cuts.length > 80);
  });

  test(`Bytes behind the end of ${name} are an error that names the first of them`, async (t) => {
    const random = randomFrom(SEED + 1);
    for (const before of [Buffer.alloc(0), padding ?? Buffer.alloc(0)])
      for (const behind of ['x', 'more text\n', '\x1f\x8a and more', '(\xb5/\xfe....', '\n'])
        for (const chunk of [1 + below(random, 50), bytes.length, 65_536]) {
          const all = Buffer.concat([bytes, before, Buffer.from(behind, 'latin1')]);
          const at = bytes.length + before.length;
          await assert.rejects(content(t, packed, all, chunk), (error) => {
            assert.ok(error instanceof BrokenSource);
            // Three bytes or fewer may be the beginning of a frame of zstd, one that of a member of gzip.
            const isShort = name.endsWith('.zst') && behind.length < 4;
            const place = isShort ? `ends too early, at byte ${all.length}` : `other bytes, from byte ${at}`;
            assert.ok(error.message.endsWith(place), `${JSON.stringify(behind)}: ${error.message}`);
            return true;
          });
        }
  });

  test(`A byte that is changed in ${name} never makes its content shorter without an error`, async (t) => {
    const random = randomFrom(SEED + 2);
    for (let n = 0; n < 25; n++) {
      const damaged = Buffer.from(bytes);
      const at = 4 + below(random, bytes.length - 4);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << below(random, 8));
      const outcome = await content(t, packed, damaged, 1 + below(random, 9_000)).catch(
        (error: unknown) => error,
      );
      if (Buffer.isBuffer(outcome)) assert.equal(outcome.length, TEXT.length, `${name}, byte ${at}`);
      else assert.ok(outcome instanceof BrokenSource, `${name}, byte ${at}: ${String(outcome)}`);
    }
  });
}

test('A file whose name says gzip or zstd, and that is cut before that shows, is refused', async (t) => {
  for (const name of ['cut.csv.gz', 'cut.ndjson.zst'])
    for (const length of [0, 1, 3]) {
      const file = join(await temporaryFolder(t), name);
      await writeFile(file, Buffer.from([0x28, 0xb5, 0x2f]).subarray(0, length));
      await assert.rejects(openSource(file, Readable.from([]), NEVER), (error) => {
        return error instanceof BrokenSource && error.message.endsWith(`too early, at byte ${length}`);
      });
    }
});

test('A pipe that breaks in compressed bytes is an error with its reason', async () => {
  const packed = zlib.gzipSync(TEXT);
  async function* broken(): AsyncGenerator<Buffer> {
    yield* inChunks(packed.subarray(0, 900), 300);
    throw Object.assign(new Error('read EIO'), { code: 'EIO', errno: -5, syscall: 'read' });
  }
  const { bytes } = await openSource('-', Readable.from(broken()), NEVER);
  await assert.rejects(
    async () => {
      for await (const chunk of bytes) assert.ok(chunk.length > 0);
    },
    (error) => error instanceof BrokenSource && error.message.endsWith('to its end: read EIO'),
  );
});

test('A named pipe is read to its end, and the wait for one that nobody writes ends with a signal', async (t) => {
  const file = join(await temporaryFolder(t), 'pipe');
  execFileSync('mkfifo', [file]);
  for (const isOpened of [false, true]) {
    const interrupt = new AbortController();
    const opening = openSource(file, Readable.from([]), interrupt.signal);
    const writer = isOpened ? createWriteStream(file) : null;
    if (writer) await once(writer, 'open');
    interrupt.abort(new Error('interrupted'));
    await assert.rejects(opening, (error) => error === interrupt.signal.reason);
    writer?.destroy();
  }
  const writer = createWriteStream(file);
  const opening = openSource(file, Readable.from([]), NEVER);
  writer.end(zlib.gzipSync(TEXT));
  const { bytes, size } = await opening;
  const chunks: Buffer[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  assert.deepEqual([size, Buffer.concat(chunks).equals(TEXT)], [null, true]);
});
