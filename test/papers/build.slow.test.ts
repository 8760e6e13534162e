import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { cli } from '../support/process/child-server.ts';

const ROOT = join(import.meta.dirname, '../..');
const DEVELOPMENT_ONLY = ['typescript', 'assemblyscript', '@scalar'];
const run = promisify(execFile);

/** A checkout with the packages of `npm ci --omit=dev` and without dist. */
async function productionCheckout(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-production-'));
  t.after(() => rm(folder, { recursive: true }));
  await cp(join(ROOT, 'src'), join(folder, 'src'), { recursive: true });
  await cp(join(ROOT, 'package.json'), join(folder, 'package.json'));
  await mkdir(join(folder, 'node_modules'));
  const packages = await readdir(join(ROOT, 'node_modules'));
  for (const name of packages.filter((each) => !DEVELOPMENT_ONLY.includes(each)))
    await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  return folder;
}

test('a build that is newer than src is not repeated, also when a design is newer', async () => {
  const built = join(await cli(), '../..', '.built');
  const before = await stat(built);
  await utimes(join(ROOT, 'src/store/DESIGN.md'), new Date(), new Date());
  await run(process.execPath, [join(ROOT, 'src/build.mjs'), '--if-stale']);
  assert.equal((await stat(built)).mtimeMs, before.mtimeMs);
});

test('in the build a literal that begins with a spread begins with an empty one', async () => {
  const dist = join(await cli(), '../..');
  const names = (await readdir(dist)).filter((name) => name.endsWith('.js'));
  const texts = await Promise.all(names.map((name) => readFile(join(dist, name), 'utf8')));
  assert.match(
    texts.join(''),
    /return \{ \.\.\.\{\}, \.\.\.rows, id \};/,
    'readCursor of store/mongo/lane/answer.ts',
  );
});

test('without development dependencies the build prints one line and succeeds', async (t) => {
  const folder = await productionCheckout(t);
  const { stdout, stderr } = await run(process.execPath, ['src/build.mjs'], { cwd: folder });
  assert.match(stdout, /^sluice: nothing is built: typescript, .* not installed .*\n$/);
  assert.equal(stderr, '');
});

test('npm start without a build prints the command to run', async (t) => {
  const folder = await productionCheckout(t);
  const started = run(process.execPath, ['src/start.mjs', 'serve'], { cwd: folder });
  await assert.rejects(started, { code: 1, stderr: /^sluice: there is no build yet\. Run `npm ci`.*\n$/ });
});

test('an interrupted build is not started', async (t) => {
  const folder = await productionCheckout(t);
  await mkdir(join(folder, 'dist/process'), { recursive: true });
  await writeFile(join(folder, 'dist/process/cli.js'), 'throw new Error("half a build")');
  await assert.rejects(run(process.execPath, ['src/start.mjs', 'serve'], { cwd: folder }), {
    stderr: /there is no build yet/,
  });
});
