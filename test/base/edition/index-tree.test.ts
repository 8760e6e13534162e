import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { ChunkEntry } from '../../../src/base/edition/head.ts';
import { filesOfIndex, indexTree } from '../../../src/base/edition/index-tree.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const chunk = (n: number): ChunkEntry => ({
  name: sha256(String(n)),
  rows: n % 7,
  bytes: n,
  crc32: '00000000',
  first: n,
  last: n,
  bound: '',
  sizes: { ndjson: n },
});
const listOf = (chunks: number) => Array.from({ length: chunks }, (_, n) => chunk(n));

test('an index lists all chunks in order, in files that a head has room for', async () => {
  for (const [length, levels] of [
    [0, 0],
    [1, 1],
    [3_000, 1],
    [90_000, 2],
  ] as const) {
    const chunks = listOf(length);
    const { index, files } = indexTree(chunks);
    assert.ok(index.length <= 256);
    assert.equal(Math.max(-1, ...index.map(({ level }) => level)) + 1, levels);
    const sum = (of: 'chunks' | 'rows' | 'bytes') => index.reduce((all, entry) => all + entry[of], 0);
    assert.equal(sum('chunks'), length);
    assert.equal(
      sum('rows'),
      chunks.reduce((all, one) => all + one.rows, 0),
    );
    const found = await filesOfIndex(index, (name) => Promise.resolve(files.get(name) ?? new Uint8Array()));
    assert.deepEqual(found.chunks, chunks);
    assert.deepEqual(new Set(found.names), new Set(files.keys()));
  }
});

test('a chunk that changes changes one index file of each level, or two', () => {
  const chunks = listOf(90_000);
  const before = indexTree(chunks).files;
  for (const at of [0, 4_711, 89_999]) {
    const after = indexTree(chunks.with(at, chunk(1_000_000 + at))).files;
    const made = [...after.keys()].filter((name) => !before.has(name));
    assert.ok(made.length >= 2 && made.length <= 4, `${made.length} files`);
  }
});

test('an index file with other bytes than its name says is refused', async () => {
  const { index } = indexTree(listOf(2));
  await assert.rejects(
    filesOfIndex(index, () => Promise.resolve(Buffer.from('{"level":0,"chunks":[]}\n'))),
    /other bytes than its name says/,
  );
});
