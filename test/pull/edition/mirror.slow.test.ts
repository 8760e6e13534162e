import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { temporaryFolder } from '../../support/directory.ts';
import { freePort } from '../../support/ports.ts';
import { cli } from '../../support/process/child-server.ts';
import { program } from '../../support/process/programs.ts';
import { editionServer, IDS, madeEdition, rowsOfIds, type MadeEdition } from '../../support/pull/editions.ts';
import { runPullOf } from '../../support/pull/pulling.ts';

const LINES = rowsOfIds(IDS.texts ?? []);
const changed = (lines: readonly string[], at: number) =>
  lines.map((line, n) => (n === at ? `${line.slice(0, -1)},"new":${at}}` : line));
const formats = ['ndjson.gz', 'ndjson.br'];
const ONE = madeEdition(LINES, { formats });
const TWO = madeEdition(changed(LINES, 100), { formats, before: ONE });
const THREE = madeEdition(changed(TWO.lines, 500).slice(0, -50), { formats, before: TWO });

/** The files of a folder, which are those of editions. */
async function filesOf(folder: string): Promise<string[]> {
  const all = await readdir(folder, { recursive: true, withFileTypes: true });
  return all
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(folder.length + 1))
    .sort();
}

/** Asserts that a folder is a whole edition, and returns its name. */
async function wholeEdition(t: TestContext, folder: string): Promise<string> {
  const server = await editionServer(t);
  for (const path of await filesOf(folder)) server.files.set(path, await readFile(join(folder, path)));
  const file = join(await temporaryFolder(t), 'copy.ndjson');
  const { code, text } = await runPullOf([`${server.url}.json`, '-o', file]);
  assert.equal(code, 0, text);
  return /edition ([0-9a-f]{64})/.exec(text)?.[1] ?? '';
}

/** The editions that the newest head of a folder names as kept, each of which must be there with all of its files. */
async function keptIn(t: TestContext, folder: string): Promise<readonly string[]> {
  const headAt = async (path: string) =>
    JSON.parse(await readFile(join(folder, path), 'utf8')) as MadeEdition['head'];
  const { edition, kept, deltas } = await headAt('edition.json');
  const files = await filesOf(folder);
  for (const { name } of deltas) assert.ok(files.includes(`chunks/${name}.delta.ndjson.gz`), name);
  const names = kept.map((one) => one.edition);
  const server = await editionServer(t);
  for (const path of files) server.files.set(path, await readFile(join(folder, path)));
  for (const name of [edition, ...names]) {
    const url = `${server.url}/${name}.json`;
    const file = join(await temporaryFolder(t), 'copy.ndjson');
    const { code, text } = await runPullOf([url, '-o', file]);
    assert.equal(code, 0, text);
    assert.match(text, new RegExp(name));
  }
  return names;
}

const namesOf = (...editions: readonly MadeEdition[]) =>
  [...new Set(editions.flatMap(({ files }) => [...files.keys()]))].sort();

test('a mirror has the files of the server, fetches what differs, and removes what no kept head names', async (t) => {
  const server = await editionServer(t, ONE);
  const folder = join(await temporaryFolder(t), 'deep/orders');
  const mirror = () => runPullOf(['--mirror', folder, server.url]);
  assert.equal((await mirror()).code, 0);
  assert.deepEqual(await filesOf(folder), namesOf(ONE));
  server.publish(TWO);
  server.asked.length = 0;
  const { code, text } = await mirror();
  assert.equal(code, 0, text);
  assert.deepEqual(await filesOf(folder), namesOf(ONE, TWO));
  assert.ok(server.asked.filter((path) => /\.(gz|br)$/.test(path)).length <= 5, String(server.asked));
  for (const path of namesOf(TWO).filter((one) => one.startsWith('chunks/')))
    assert.ok((await readFile(join(folder, path))).equals(TWO.files.get(path) ?? Buffer.alloc(0)), path);
  server.asked.length = 0;
  assert.match((await mirror()).text, /had already/);
  assert.deepEqual(server.asked, ['edition']);
  const newest = { ...THREE.head, kept: THREE.head.kept.slice(0, 1) };
  server.publish(THREE);
  server.files.set('edition.json', Buffer.from(JSON.stringify(newest)));
  await writeFile(join(folder, 'chunks/left.part'), 'by a kill');
  assert.equal((await mirror()).code, 0);
  assert.deepEqual(await filesOf(folder), namesOf(TWO, THREE));
});

test('the head of a mirror names only editions that the mirror has', async (t) => {
  const server = await editionServer(t, ONE);
  server.publish(TWO);
  const folder = await temporaryFolder(t);
  const mirror = async () => assert.equal((await runPullOf(['--mirror', folder, server.url])).code, 0);
  const [one, two] = [ONE, TWO].map(({ head }) => head.edition);
  assert.deepEqual(
    TWO.head.kept.map(({ edition }) => edition),
    [one],
  );
  await mirror();
  assert.deepEqual(await keptIn(t, folder), []);
  server.publish(THREE);
  await mirror();
  assert.deepEqual(await keptIn(t, folder), [two]);
  const known = await readFile(join(folder, 'edition.json'));
  server.asked.length = 0;
  await mirror();
  assert.deepEqual(server.asked, ['edition'], 'the head of a mirror lacks nothing');
  assert.deepEqual(await readFile(join(folder, 'edition.json')), known);
  const own = TWO.chunks
    .map(({ name }) => name)
    .find((name) => THREE.chunks.every((one) => one.name !== name));
  await rm(join(folder, `chunks/${own}.ndjson.br`)); // by somebody else
  await mirror();
  assert.deepEqual(await keptIn(t, folder), []);
});

test('a mirror of files elsewhere names its own', async (t) => {
  const elsewhere = await editionServer(t, ONE);
  const server = await editionServer(t);
  const made = madeEdition(LINES, { formats, files: `${elsewhere.origin}/orders/chunks/` });
  server.files.set('edition.json', made.files.get('edition.json') ?? Buffer.alloc(0));
  const folder = await temporaryFolder(t);
  assert.equal((await runPullOf(['--mirror', folder, server.url])).code, 0);
  assert.equal(await wholeEdition(t, folder), ONE.head.edition);
});

test('a mirror that is killed anywhere is a whole older edition, and goes on', async (t) => {
  const server = await editionServer(t, ONE);
  const folder = await temporaryFolder(t);
  assert.equal((await runPullOf(['--mirror', folder, server.url])).code, 0);
  for (const edition of [TWO, THREE]) server.publish(edition);
  for (let kill = 1; kill < 7; kill += 2) {
    let n = 0;
    const reached = new AbortController();
    const isReached = once(reached.signal, 'abort');
    server.handle = ({ url = '' }) => {
      if (!url.includes('/chunks/') || ++n < kill) return false;
      reached.abort();
      return true; // it is not answered
    };
    const child = spawn(process.execPath, [await cli(), 'pull', '--mirror', folder, server.url], {
      stdio: 'ignore',
    });
    await isReached;
    child.kill('SIGKILL');
    await once(child, 'exit');
    assert.equal(await wholeEdition(t, folder), ONE.head.edition);
  }
  server.handle = () => false;
  assert.equal((await runPullOf(['--mirror', folder, server.url])).code, 0);
  assert.equal(await wholeEdition(t, folder), THREE.head.edition);
});

test('nginx serves a mirror alone, to pulls and to other mirrors', async (t) => {
  const nginx = program(t, ['nginx', '/usr/sbin/nginx'], ['-v']);
  if (nginx === null) return;
  const server = await editionServer(t, ONE);
  const folder = await temporaryFolder(t);
  const root = join(folder, 'www');
  await mkdir(root);
  assert.equal((await runPullOf(['--mirror', join(root, 'orders'), server.url])).code, 0);
  const port = await freePort();
  const config = `daemon off; pid ${folder}/pid; error_log stderr crit; ${process.getuid?.() === 0 ? 'user root;' : ''} events {}
http { access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f;
uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s; server { listen 127.0.0.1:${port}; root ${root}; } }`;
  await writeFile(join(folder, 'conf'), config);
  const child = spawn(nginx, ['-p', folder, '-c', join(folder, 'conf')], { stdio: 'ignore' });
  t.after(async () => {
    child.kill();
    await once(child, 'exit');
  });
  const url = `http://127.0.0.1:${port}/orders/edition.json`;
  const file = join(folder, 'orders.ndjson');
  // The pull waits for a server that has not come up.
  const { code, text } = await runPullOf([url, '-o', file], {
    clock: {
      now: () => performance.now(),
      sleep: () => new Promise((done) => setTimeout(done, 50)),
      random: () => 0,
    },
  });
  assert.equal(code, 0, text);
  assert.ok((await readFile(file)).equals(ONE.rows));
  const second = join(folder, 'second');
  assert.equal((await runPullOf(['--mirror', second, url])).code, 0);
  assert.equal(await wholeEdition(t, second), ONE.head.edition);
});

test('the command line of mirrors', async () => {
  const url = 'http://127.0.0.1:1/orders/edition';
  const wrong: [string[], RegExp][] = [
    [['http://127.0.0.1:1/orders', '--mirror', 'a'], /--mirror takes the URL of an edition/],
    [[url, '--mirror', 'a', '-o', 'b'], /one of -o, --into and --mirror/],
    [[`${url}/${'a'.repeat(64)}`, '--mirror', 'a'], /takes the URL of the newest one/],
  ];
  for (const [argv, reason] of wrong) await assert.rejects(() => runPullOf(argv), reason);
});
