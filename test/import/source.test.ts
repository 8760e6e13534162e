import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import * as zlib from 'node:zlib';
import { openSource } from '../../src/import/source.ts';
import { BrokenSource } from '../../src/import/row.ts';
import { temporaryFolder } from '../support/directory.ts';

const NEVER = new AbortController().signal;
const TEXT = Buffer.from('größe 𝄞\n'.repeat(100_000));
const EMPTY = Readable.from([]);

async function fileWith(t: TestContext, name: string, content: Uint8Array): Promise<string> {
  const path = join(await temporaryFolder(t), name);
  await writeFile(path, content);
  return path;
}

async function content(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const FILES: [name: string, content: Buffer][] = [
  ['plain.csv', TEXT],
  ['packed.csv.gz', zlib.gzipSync(TEXT)],
  ['gzip by its bytes.csv', zlib.gzipSync(TEXT)],
  [
    'gzip in two members.gz',
    Buffer.concat([zlib.gzipSync(TEXT.subarray(0, 500)), zlib.gzipSync(TEXT.subarray(500))]),
  ],
  ['not packed at all.csv.gz', TEXT],
  ['packed.csv.br', zlib.brotliCompressSync(TEXT, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
  ['UPPER.BR', zlib.brotliCompressSync(TEXT, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
];

for (const [name, packed] of FILES) {
  test(`The file "${name}" gives its content and the number of bytes read`, async (t) => {
    const source = await openSource(await fileWith(t, name, packed), EMPTY, NEVER);
    assert.equal(source.size, packed.length);
    assert.ok((await content(source.bytes)).equals(TEXT));
    assert.equal(source.position(), packed.length);
  });
}

test('An empty file has no content', async (t) => {
  const source = await openSource(await fileWith(t, 'empty.csv', Buffer.alloc(0)), EMPTY, NEVER);
  assert.equal((await content(source.bytes)).length, 0);
});

test('Standard input may be compressed with gzip and may arrive one byte at a time', async () => {
  const packed = zlib.gzipSync(TEXT.subarray(0, 500));
  const stdin = Readable.from(Array.from(packed, (byte) => Buffer.of(byte)));
  const { bytes, size } = await openSource('-', stdin, NEVER);
  assert.equal(size, null);
  assert.ok((await content(bytes)).equals(TEXT.subarray(0, 500)));
});

test('A zstd file is read where Node.js supports it, and refused with the required version elsewhere', async (t) => {
  const { zstdCompressSync } = zlib as { zstdCompressSync?: (content: Buffer) => Buffer };
  const packed = zstdCompressSync?.(TEXT) ?? Buffer.from('28b52ffd00', 'hex');
  const file = await fileWith(t, 'packed.csv.zst', packed);
  if (zstdCompressSync) {
    assert.ok((await content((await openSource(file, EMPTY, NEVER)).bytes)).equals(TEXT));
  } else {
    await assert.rejects(
      openSource(file, EMPTY, NEVER),
      /compressed with zstd, which requires Node\.js 22\.15/,
    );
  }
});

const DAMAGED: [name: string, content: Buffer][] = [
  ['cut off.gz', zlib.gzipSync(TEXT).subarray(0, 500)],
  ['cut off.br', zlib.brotliCompressSync(TEXT).subarray(0, 30)],
  ['no brotli.br', Buffer.from('this is no brotli at all')],
  ['wrong checksum.gz', flipped(zlib.gzipSync(TEXT), -6)],
];

function flipped(bytes: Buffer, at: number): Buffer {
  const index = bytes.length + at;
  bytes[index] = (bytes[index] ?? 0) ^ 0xff;
  return bytes;
}

for (const [name, bytes] of DAMAGED) {
  test(`A damaged file (${name}) is refused and never read as a shorter one`, async (t) => {
    const source = await openSource(await fileWith(t, name, bytes), EMPTY, NEVER);
    await assert.rejects(
      content(source.bytes),
      (error) =>
        error instanceof BrokenSource && error.message.startsWith('cannot read the source to its end: '),
    );
  });
}

test('A missing file and a directory are refused with the reason', async () => {
  const missing = join(tmpdir(), 'sluice-nothing-here.csv');
  await assert.rejects(openSource(missing, EMPTY, NEVER), (error) => {
    return error instanceof BrokenSource && /cannot open ".*": ENOENT/.test(error.message);
  });
  await assert.rejects(openSource(tmpdir(), EMPTY, NEVER), (error) => {
    return error instanceof BrokenSource && error.message.includes('EISDIR');
  });
});

test('An interrupt ends the wait for standard input with its reason', async () => {
  for (const packed of [false, true]) {
    const stdin = new PassThrough();
    stdin.write(packed ? zlib.gzipSync(TEXT).subarray(0, 100) : 'some bytes');
    const interrupt = new AbortController();
    const { bytes } = await openSource('-', stdin, interrupt.signal);
    const reading = content(bytes);
    interrupt.abort(new Error('interrupted'));
    await assert.rejects(reading, (error) => error === interrupt.signal.reason);
  }
});

test('A reader that stops early closes the source', async () => {
  for (const packed of [TEXT, zlib.gzipSync(TEXT)]) {
    const stdin = Readable.from(inPieces(packed));
    const { bytes } = await openSource('-', stdin, NEVER);
    for await (const chunk of bytes) {
      assert.ok(chunk.length > 0);
      break;
    }
    if (!stdin.closed) await new Promise((resolve) => stdin.once('close', resolve));
    assert.ok(stdin.destroyed);
  }
});

function* inPieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 100) yield bytes.subarray(at, at + 100);
}
