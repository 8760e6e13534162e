import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { directoryFiles } from '../../src/store/folder/directory.ts';
import { FileGoneError, type FileStore } from '../../src/store/files.ts';
import { openFiles } from '../../src/server/open-files.ts';
import { temporaryFolder } from '../support/directory.ts';
import { testBucket } from '../support/store/bucket/bucket.ts';
import { Seaweed } from '../support/store/bucket/seaweed.ts';
import { testMongoStore } from '../support/store/mongo/mongo.ts';
import { shared, testsWith } from '../support/tests-with.ts';

const seaweed = shared((t) => Seaweed.start(t));
const NO_FILES = { files: directoryFiles('/nowhere') };
const ID = () => Promise.resolve('id0');

const PLACES: [name: string, open: (t: TestContext) => Promise<FileStore | null>][] = [
  ['a directory', async (t) => directoryFiles(join(await temporaryFolder(t), 'exports'))],
  ['GridFS', async (t) => (await testMongoStore(t))?.store.files ?? null],
  ['file:///', async (t) => openFiles({ kind: 'folder', path: await temporaryFolder(t) }, NO_FILES, ID)],
  [
    's3://',
    async (t) => {
      const place = await testBucket(t, seaweed);
      const files = place && (await openFiles(place, NO_FILES, ID));
      t.after(() => files?.close?.());
      return files;
    },
  ],
];
/** More than the memory of any writer. */
const LARGE = Buffer.alloc(9 * 1024 * 1024, 'large');

async function readAll(files: FileStore, name: string, start: number, end: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of files.read(name, start, end)) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

test('GridFS lists all names, even more than one reply holds', async (t) => {
  const mongo = await testMongoStore(t);
  if (!mongo) return;
  const names = Array.from({ length: 20_001 }, (_, n) => `a.${String(n).padStart(6, '0')}`);
  const documents = names.map((_id) => ({ _id: _id as never }));
  await mongo.client.db().collection('exports.files').insertMany(documents);
  assert.deepEqual(await mongo.store.files.names(), names);
});

for (const [place, open] of PLACES) {
  const it = testsWith(open, place);
  it('any range of a finished file is what was written', async (files) => {
    const pieces = [1, 300_000, 0, 261_120, 900_001].map((length, n) => Buffer.alloc(length, `${n}-abc`));
    const whole = Buffer.concat(pieces);
    const writer = await files.create('a1.b2');
    for (const piece of pieces) await writer.write(piece);
    assert.equal(await files.size('a1.b2'), null, 'the file is not finished');
    await writer.finish();
    await writer.close();
    await assert.rejects(readAll(files, 'a1.b2', 0, whole.length + 1), FileGoneError);
    assert.equal(await files.size('a1.b2'), whole.length);
    for (const [start, end] of [
      [0, whole.length],
      [261_119, 261_121],
      [5, 5],
      [whole.length - 1, whole.length],
      [300_000, 1_100_000],
    ] as const)
      assert.ok(
        (await readAll(files, 'a1.b2', start, end)).equals(whole.subarray(start, end)),
        `${start}-${end}`,
      );
    assert.deepEqual(await files.names(), ['a1.b2']);
    for (const other of ['a1.b3', 'a12.b2', 'a.b2']) {
      const unfinished = await files.create(other);
      await unfinished.write(LARGE);
      await unfinished.close();
    }
    assert.deepEqual((await files.names('a1')).toSorted(), ['a1.b2', 'a1.b3']);
    assert.deepEqual(await files.names('b2'), []);
    for (const other of ['a1.b3', 'a12.b2', 'a.b2']) await files.remove(other);
    await files.remove('a1.b2');
    await files.remove('a1.b2');
    assert.deepEqual(await files.names(), []);
    await assert.rejects(readAll(files, 'a1.b2', 0, 1), FileGoneError);
  });

  it('a large file is what was written, and one that is removed while it is read ends or is gone', async (files) => {
    const whole = Buffer.concat([LARGE, Buffer.from('-'), LARGE, Buffer.from('end')]);
    const writer = await files.create('a1.b2');
    const piece = Buffer.alloc(1_000_003);
    for (let at = 0; at < whole.length; at += piece.length) {
      const length = whole.copy(piece, 0, at);
      await writer.write(piece.subarray(0, length));
      piece.fill(0); // the caller may use it again
    }
    await writer.finish();
    await writer.close();
    assert.equal(await files.size('a1.b2'), whole.length);
    assert.ok((await readAll(files, 'a1.b2', 0, whole.length)).equals(whole));
    assert.deepEqual(await files.names(), ['a1.b2']);
    let read = 0;
    try {
      for await (const chunk of files.read('a1.b2', 0, whole.length)) {
        if (read === 0) await files.remove('a1.b2');
        assert.ok(whole.subarray(read, (read += chunk.length)).equals(chunk));
      }
      assert.equal(read, whole.length);
    } catch (error) {
      assert.ok(error instanceof FileGoneError, String(error));
    }
    assert.equal(await files.size('a1.b2'), null);
  });

  it('a file of no bytes is a file', async (files) => {
    await (await files.create('a.b')).finish();
    assert.equal(await files.size('a.b'), 0);
    assert.equal((await readAll(files, 'a.b', 0, 0)).length, 0);
    assert.deepEqual(await files.names('a'), ['a.b']);
  });

  it('a file can be started again under its name, and other names are not found', async (files) => {
    const first = await files.create('a.b');
    await first.write(Buffer.from('first, and longer'));
    await first.close();
    const second = await files.create('a.b');
    await second.write(Buffer.from('second'));
    await second.finish();
    assert.equal(String(await readAll(files, 'a.b', 0, 6)), 'second');
    assert.equal(await files.size('a.b'), 6);
    for (const name of ['../a.b', 'a', 'a.b/c', 'a.b.part', '.b', 'A.b', '']) {
      assert.equal(await files.size(name), null);
      await assert.rejects(files.create(name), TypeError);
      await assert.rejects(files.remove(name), TypeError);
    }
  });
}

test('in a directory a link is no file, wherever it points', async (t) => {
  const outside = await temporaryFolder(t);
  const path = join(outside, 'exports');
  await mkdir(path);
  await writeFile(join(outside, 'secret'), 'secret');
  await symlink(join(outside, 'secret'), join(path, 'a.b'));
  const files = directoryFiles(path);
  assert.equal(await files.size('a.b'), null);
  await assert.rejects(readAll(files, 'a.b', 0, 6), FileGoneError);
});
