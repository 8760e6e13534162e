import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import * as zlib from 'node:zlib';
import { BrokenSource } from '../../src/import/row.ts';
import { openSource } from '../../src/import/source.ts';
import { temporaryFolder } from '../support/directory.ts';
import { inChunks } from '../support/import/import-reading.ts';
import { content, NEVER, packedFiles, TEXT } from '../support/import/packed-files.ts';

// The slow form has all chunks, cuts at every boundary, other bytes behind, and changed bytes.
for (const packed of packedFiles())
  test(`${packed.name} is read whole, or refused where it is cut or goes on with other bytes`, async (t) => {
    const { bytes } = packed;
    for (const chunk of [97, 65_536])
      assert.ok((await content(t, packed, bytes, chunk)).equals(TEXT), `chunks of ${chunk} bytes`);
    const cut = bytes.length - 9;
    await assert.rejects(content(t, packed, bytes.subarray(0, cut)), (error) => {
      return error instanceof BrokenSource && error.message.endsWith(`ends too early, at byte ${cut}`);
    });
    await assert.rejects(content(t, packed, Buffer.concat([bytes, Buffer.from('more')])), (error) => {
      return error instanceof BrokenSource && error.message.endsWith(`from byte ${bytes.length}`);
    });
  });

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
