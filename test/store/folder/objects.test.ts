import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'node:test';
import { FolderObjects } from '../../../src/store/folder/objects.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { isProblem } from '../../support/store/changes.ts';
import { listed } from '../../contracts/objects.contract.ts';

const MODULE = pathToFileURL(join(import.meta.dirname, '../../../src/store/folder/objects.ts')).href;

test('another user may read the files, whatever the umask says', async (t) => {
  const root = join(await temporaryFolder(t), 'new', 'editions');
  const before = process.umask(0o077);
  t.after(() => process.umask(before));
  await new FolderObjects(root).put('orders/chunks/a.gz', Buffer.from('a'));
  const modeOf = async (path: string) => (await stat(join(root, path))).mode & 0o777;
  assert.equal(await modeOf('orders/chunks/a.gz'), 0o644);
  for (const folder of ['.', 'orders', 'orders/chunks']) assert.equal(await modeOf(folder), 0o755, folder);
});

test('what a killed writer left is not listed, and goes after an hour', async (t) => {
  const root = join(await temporaryFolder(t), 'editions');
  const program = `
    import { FolderObjects } from ${JSON.stringify(MODULE)};
    const objects = new FolderObjects(${JSON.stringify(root)});
    const bytes = Buffer.alloc(8 << 20, 'x');
    for (let n = 0; ; n++) { await objects.put('orders/chunks/' + n % 3, bytes); process.stdout.write('.'); }`;
  for (let round = 0; round < 3; round++) {
    const writer = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(writer.stdout, 'data');
    await once(writer.stdout, 'data');
    writer.kill('SIGKILL');
    await once(writer, 'exit');
  }
  const unfinished = join(root, '@unfinished');
  await writeFile(join(unfinished, 'left'), 'x');
  const objects = new FolderObjects(root);
  for (const [path, bytes] of await listed(objects, '')) {
    assert.match(path, /^orders\/chunks\/[012]$/);
    assert.equal(bytes, 8 << 20, `${path} is whole`);
  }
  assert.ok((await readdir(unfinished)).length > 0, 'another process may still write it');
  const old = new Date(Date.now() - 2 * 3_600_000);
  for (const name of await readdir(unfinished)) await utimes(join(unfinished, name), old, old);
  await listed(objects, '');
  assert.deepEqual(await readdir(unfinished), []);
});

test('a folder that is removed is made again, and links are no objects', async (t) => {
  const root = join(await temporaryFolder(t), 'editions');
  const objects = new FolderObjects(root);
  await objects.put('orders/a', Buffer.from('a'));
  await rm(root, { recursive: true });
  await objects.put('orders/a', Buffer.from('a')).catch(() => undefined);
  await objects.put('orders/a', Buffer.from('again'));
  assert.equal(String(await objects.get('orders/a')), 'again');
  await symlink('/etc/passwd', join(root, 'orders', 'b'));
  assert.equal(await objects.get('orders/b'), null);
  assert.equal(await objects.size('orders/b'), null);
  assert.deepEqual([...(await listed(objects, '')).keys()], ['orders/a']);
  assert.equal(await objects.put('orders/b', Buffer.from('b')), true, 'it is replaced, not followed');
});

test('a full disk and a folder that cannot be written are insufficient storage', async (t) => {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, 'file'), 'x');
  const inFile = new FolderObjects(join(folder, 'file'));
  await assert.rejects(inFile.put('orders/a', Buffer.from('a')), isProblem('insufficient-storage'));
  assert.equal(await inFile.get('orders/a'), null);
  if (process.getuid?.() === 0) return; // root may write anywhere
  const root = join(folder, 'locked');
  await mkdir(root);
  await chmod(root, 0o500);
  const locked = new FolderObjects(root);
  await assert.rejects(locked.put('orders/a', Buffer.from('a')), isProblem('insufficient-storage'));
  await assert.rejects(locked.ping(), isProblem('insufficient-storage'));
});
