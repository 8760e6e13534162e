import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import * as zlib from 'node:zlib';
import { openSource } from '../../../src/import/source.ts';
import { temporaryFolder } from '../directory.ts';
import { inChunks } from './import-reading.ts';

const { zstdCompressSync } = zlib as { zstdCompressSync?: (content: Buffer, options?: object) => Buffer };
const CHECKSUM_FLAG = 201; // ZSTD_c_checksumFlag
export const NEVER = new AbortController().signal;
const LINES = Array.from({ length: 150 }, (_, n) => `${n},${Math.imul(n, 2_654_435_761) >>> 0},größe\n`);
/** Long enough for several blocks of zstd. */
export const TEXT = Buffer.from(LINES.join('') + 'the same line again\n'.repeat(20_000));
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

export interface Packed {
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

/** Files of the same content, by each coding that this Node has, in one part and in several. */
export function packedFiles(): readonly Packed[] {
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
export async function content(
  t: TestContext,
  { name }: Packed,
  bytes: Buffer,
  chunk = 65_536,
): Promise<Buffer> {
  const isNamed = name.endsWith('.br');
  const file = isNamed ? join(await temporaryFolder(t), name) : '-';
  if (isNamed) await writeFile(file, bytes);
  const source = await openSource(file, Readable.from(inChunks(bytes, chunk)), NEVER);
  const chunks: Buffer[] = [];
  for await (const one of source.bytes) chunks.push(one);
  return Buffer.concat(chunks);
}
