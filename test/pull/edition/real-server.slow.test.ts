import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { EditionHead } from '../../../src/base/edition/head.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { itemEditions, OTHERS, ROWS, type ItemEditions } from '../../support/editions/edition-server.ts';
import { cli } from '../../support/process/child-server.ts';
import { onStores } from '../../support/process/each-server.ts';
import { editionServer } from '../../support/pull/editions.ts';
import { runPullOf } from '../../support/pull/pulling.ts';
import { NEVER } from '../../support/store/reading.ts';
import { queryFile } from '../../support/store/sqlite/sqlite.ts';

const isChunk = (path: string) => path.endsWith('.ndjson.gz') && !path.includes('.delta.');
const textOf = (rows: Buffer) => rows.toString().split('\n').slice(0, -1);
const copied = (file: string) => new Set(queryFile(file, 'SELECT row FROM items').map(([row]) => row));

/** Changes one row, removes one and adds one, far from one another. */
async function changeThree(at: ItemEditions): Promise<void> {
  await at.server.insert(OTHERS.slice(0, 1));
  for (const n of [2_000, 100]) await at.remove(ROWS[n]?._id);
  await at.server.insert([{ ...ROWS[100], n: -1 }]);
}

/** Runs a pull in a process of its own, which is killed when it asks for the chunk of this number. */
async function killed({ proxy }: ItemEditions, at: number, argv: readonly string[]): Promise<void> {
  const reached = new AbortController();
  const isReached = once(reached.signal, 'abort');
  let n = 0;
  proxy.handle = (path) => {
    if (!isChunk(path) || ++n < at) return false;
    reached.abort();
    return true;
  };
  const child = spawn(process.execPath, [await cli(), 'pull', ...argv], { stdio: 'ignore' });
  await isReached;
  child.kill('SIGKILL');
  await once(child, 'exit');
  proxy.handle = () => false;
}

/** Serves a folder as a web server does. */
async function served(t: TestContext, folder: string): Promise<string> {
  const server = await editionServer(t);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) server.files.set(path.slice(folder.length + 1), await readFile(path));
  }
  return `${server.url}.json`;
}

async function pulled(argv: readonly string[]): Promise<string> {
  const { code, text } = await runPullOf(argv);
  assert.equal(code, 0, text);
  return text;
}

onStores(itemEditions, (test) => {
  test('a pull is the stream, and the next one fetches the chunks that differ', async (at, t) => {
    const { url, proxy } = at;
    const file = join(await temporaryFolder(t), 'items.ndjson');
    assert.match(await pulled([url, '-o', file]), /pulled and proved the edition/);
    assert.ok((await readFile(file)).equals(await at.stream()));
    assert.ok(proxy.asked.filter(isChunk).length > 8);
    await changeThree(at);
    const { rows } = await at.publish();
    assert.equal(rows, ROWS.length);
    proxy.asked.length = 0;
    await pulled([url, '-o', file]);
    assert.ok((await readFile(file)).equals(await at.stream()));
    assert.ok(proxy.asked.filter(isChunk).length <= 6, String(proxy.asked));
    proxy.asked.length = 0;
    assert.match(await pulled([url, '-o', file]), /proved, and had already/);
    assert.deepEqual(proxy.asked, ['/items/edition']);
  });

  test('a mirror of the server is read in turn, and follows it by what differs', async (at, t) => {
    const folder = await temporaryFolder(t);
    const [mirror, second, file] = ['mirror', 'second', 'items.ndjson'].map((name) => join(folder, name));
    const check = async (): Promise<void> => {
      const url = await served(t, mirror ?? '');
      await pulled([url, '-o', file ?? '']);
      assert.ok((await readFile(file ?? '')).equals(await at.stream()));
      await pulled(['--mirror', second ?? '', url]);
    };
    await pulled(['--mirror', mirror ?? '', at.url]);
    await check();
    await changeThree(at);
    await at.publish();
    at.proxy.asked.length = 0;
    await pulled(['--mirror', mirror ?? '', at.url]);
    assert.ok(at.proxy.asked.filter(isChunk).length <= 6, String(at.proxy.asked));
    assert.equal(at.proxy.asked.filter((path) => path.includes('.delta.')).length, 1);
    await check();
  });

  test('a mirror has the later cursor of an edition whose rows are the same', async (at, t) => {
    const folder = await temporaryFolder(t);
    await pulled(['--mirror', folder, at.url]);
    await changeThree(at);
    const middle = await at.publish();
    await pulled(['--mirror', folder, at.url]);
    await at.server.insert(OTHERS.slice(1, 2));
    await at.remove(OTHERS[1]?._id);
    const head = await at.publish();
    assert.equal(head.edition, middle.edition);
    assert.notEqual(head.changes, middle.changes);
    await pulled(['--mirror', folder, at.url]);
    const own = JSON.parse(await readFile(join(folder, 'edition.json'), 'utf8')) as EditionHead;
    assert.deepEqual({ ...own, files: '' }, { ...head, files: '' });
  });

  test('a copy that was off until its history was lost reads only what differs, and is proved', async (at, t) => {
    const file = join(await temporaryFolder(t), 'copy.sqlite');
    const set = at.url.replace('/edition', '');
    assert.match(await pulled([at.url, '--into', file]), /proved that the copy is the edition/);
    assert.deepEqual(copied(file), new Set(textOf(await at.stream())));
    await changeThree(at);
    at.proxy.asked.length = 0;
    await pulled([set, '--into', file]);
    assert.deepEqual(copied(file), new Set(textOf(await at.stream())));
    assert.equal(at.proxy.asked.filter(isChunk).length, 0, 'changes are enough while the history is there');
    await at.server.store.items.clear(NEVER);
    await at.server.insert(ROWS);
    await changeThree(at);
    const old = await at.publish();
    await at.server.insert(OTHERS.slice(2, 4));
    at.proxy.asked.length = 0;
    at.proxy.sent.bytes = 0;
    const text = await pulled([set, '--into', file]);
    assert.match(
      text,
      new RegExp(`reading what differs[^]*proved that the copy is the edition ${old.edition}`),
    );
    assert.deepEqual(copied(file), new Set(textOf(await at.stream())));
    assert.ok(at.proxy.asked.filter(isChunk).length <= 6, String(at.proxy.asked));
    await at.server.insert(OTHERS.slice(4, 5));
    await pulled([set, '--into', file]);
    assert.deepEqual(copied(file), new Set(textOf(await at.stream())));
  });

  test('pulls that are killed go on, whatever is published meanwhile', async (at, t) => {
    const folder = await temporaryFolder(t);
    const [file = '', copy = '', mirror = ''] = ['items.ndjson', 'copy.sqlite', 'mirror'].map((name) =>
      join(folder, name),
    );
    const ways = [
      [at.url, '-o', file],
      [at.url, '--into', copy],
      ['--mirror', mirror, at.url],
    ];
    for (const way of ways) await killed(at, 9, way);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name === 'items.ndjson'),
      [],
    );
    const first = await at.stream();
    await changeThree(at);
    await at.publish();
    at.proxy.asked.length = 0;
    for (const way of ways) await pulled(way);
    // The file goes on with the edition that it began, which is kept.
    assert.ok((await readFile(file)).equals(first));
    const now = await at.stream();
    assert.deepEqual(copied(copy), new Set(textOf(now)));
    await pulled([at.url, '-o', file]);
    assert.ok((await readFile(file)).equals(now));
    const mirrored = join(folder, 'mirrored.ndjson');
    await pulled([await served(t, mirror), '-o', mirrored]);
    assert.ok((await readFile(mirrored)).equals(now));
  });

  test('files that go while they are read lead to the newest edition', async (at, t) => {
    const folder = await temporaryFolder(t);
    for (const [n, way] of [
      [0, [at.url, '-o', join(folder, 'items.ndjson')]],
      [1, [at.url, '--into', join(folder, 'copy.sqlite')]],
      [2, ['--mirror', join(folder, 'mirror'), at.url]],
    ] as const) {
      const head = (await (await at.server.get('/items/edition')).json()) as EditionHead;
      const last = (await at.chunks(head)).at(-1)?.last;
      const goes = async (): Promise<void> => {
        // Its first and its last chunk become others.
        await at.remove(last);
        await at.server.insert([{ ...OTHERS[10 + n], _id: `a-${n}` }]);
        await at.keepOnly(await at.publish(), head);
      };
      let going: Promise<void> | null = null;
      at.proxy.handle = async (path) => {
        if (isChunk(path)) await (going ??= goes());
        return false;
      };
      const { code, text } = await runPullOf(way);
      at.proxy.handle = () => false;
      assert.equal(code, 0, text);
    }
    const mirrored = join(folder, 'mirrored.ndjson');
    await pulled([await served(t, join(folder, 'mirror')), '-o', mirrored]);
    assert.ok((await readFile(mirrored)).equals(await at.stream()));
  });

  test('a chunk that is damaged on the disk of the server is refused by name', async (at, t) => {
    const folder = await temporaryFolder(t);
    const head = (await (await at.server.get('/items/edition')).json()) as EditionHead;
    const { name = '' } = (await at.chunks(head))[3] ?? {};
    const path = join(at.folder, `chunks/${name}.ndjson.gz`);
    const whole = await readFile(path);
    const flipped = Buffer.from(whole);
    flipped[40] = (flipped[40] ?? 0) ^ 1;
    const ways = [
      [at.url, '-o', join(folder, 'items.ndjson')],
      [at.url, '--into', join(folder, 'copy.sqlite')],
      ['--mirror', join(folder, 'mirror'), at.url],
    ];
    for (const bytes of [flipped, whole.subarray(0, -20), Buffer.from('<html>')]) {
      await writeFile(path, bytes);
      for (const way of ways) {
        const { code, text } = await runPullOf(way);
        assert.equal(code, 1, text);
        assert.match(text, new RegExp(`${name}.ndjson.gz is not what its name says`));
      }
      assert.deepEqual((await readdir(folder)).includes('items.ndjson'), false);
    }
    await writeFile(path, whole);
    for (const way of ways) await pulled(way);
    assert.ok((await readFile(join(folder, 'items.ndjson'))).equals(await at.stream()));
  });
});
