import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/directory.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { program } from '../support/process/programs.ts';
import { testServer, type TestServer } from '../support/process/server.ts';
import { shared } from '../support/tests-with.ts';

const run = promisify(execFile);
const MOST_BYTES = 200_000;
const { version: VERSION } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
) as { version: string };
const WHEEL = `sluice_client-${VERSION}-py3-none-any.whl`;

interface Listed {
  readonly version: string;
  readonly clients: readonly { readonly name: string; readonly url: string; readonly sha256: string }[];
}

const catalogueOfFile = shared((t) => testServer(t, 'sqlite', 'uws', { SAMPLE: 'auto' }));
const catalogue = async (t: TestContext) => (await catalogueOfFile(t)) ?? assert.fail();

/** Downloads a client into an empty folder, as a user does. */
async function download(t: TestContext, server: TestServer, name: string): Promise<string> {
  const file = join(await temporaryFolder(t), name);
  await writeFile(file, Buffer.from(await (await server.get(`/clients/${name}`)).arrayBuffer()));
  return file;
}

test('the server hands out its clients without a key, to be cached, each in at most 200 KB', async (t) => {
  const server = await keyedServer(t, 'sqlite', [{ name: 'ada' }], []);
  const list = (await (await server.get('/clients')).json()) as Listed;
  assert.equal(list.version, VERSION);
  assert.deepEqual(
    list.clients.map(({ name }) => name),
    ['sluice-pull.mjs', 'sluice.mjs', 'sluice.d.ts', WHEEL],
  );
  for (const { url, sha256 } of list.clients) {
    const response = await server.get(url);
    const content = Buffer.from(await response.arrayBuffer());
    assert.equal(response.status, 200, url);
    assert.ok(content.length > 1000 && content.length <= MOST_BYTES, `${url} has ${content.length} bytes`);
    assert.equal(createHash('sha256').update(content).digest('hex'), sha256, url);
    assert.match(response.headers.get('cache-control') ?? '', /^public, max-age=\d+$/, url);
    const etag = response.headers.get('etag') ?? '';
    assert.equal((await server.get(url, { 'if-none-match': etag })).status, 304, url);
  }
});

test('the pull that is one file pulls a whole set from an empty folder', async (t) => {
  const server = await catalogue(t);
  const file = await download(t, server, 'sluice-pull.mjs');
  const cwd = join(file, '..');
  const pull = (...args: readonly string[]) => run(process.execPath, [file, ...args], { cwd });
  const { stderr } = await pull(`${server.url}/items?category=Ideal`, '-o', 'ideal.ndjson');
  assert.match(stderr, /^pulled and proved 21,551 rows/);
  const plain = await (await server.get('/items/stream?category=Ideal')).text();
  assert.equal(await readFile(join(cwd, 'ideal.ndjson'), 'utf8'), plain);

  assert.equal((await pull('--version')).stdout, `${VERSION}\n`);
  const help = (await pull('--help')).stdout;
  assert.match(help, /^Usage:\n {2}node sluice-pull\.mjs URL -o FILE/);
  assert.doesNotMatch(help, /sluice pull/);
  await assert.rejects(pull('nonsense', '-o', 'a'), { code: 2, stderr: /^sluice: pull takes a URL/ });
});

test('the pull that is one file keeps a copy in SQLite where Node has SQLite, and else says what it needs', async (t) => {
  const server = await catalogue(t);
  const file = await download(t, server, 'sluice-pull.mjs');
  const copy = () =>
    run(process.execPath, [file, `${server.url}/items`, '--into', join(file, '../a.sqlite')]);
  if (process.getBuiltinModule('node:sqlite')) {
    const stderr = 'the copy is up to date\nproved 53,940 lines of rows and removals';
    assert.ok((await copy()).stderr.startsWith(stderr));
    assert.match((await copy()).stderr, /proved 0 lines/);
  } else
    await assert.rejects(copy(), {
      code: 1,
      stderr: `sluice: --into needs the SQLite of Node.js 22.16 or newer, and this is ${process.version}. Use -o FILE, or the command sluice pull of the package\n`,
    });
});

test('pip installs the wheel of the server without any other host, and the client reads a set', async (t) => {
  const python = program(t, ['python3', '/usr/bin/python3'], ['-m', 'pip', '--version']);
  if (python === null) return;
  const server = await catalogue(t);
  const folder = await temporaryFolder(t);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-index', '--no-deps'];
  await run(python, [...pip, '--target', folder, `${server.url}/clients/${WHEEL}`]);
  const env = { ...process.env, PYTHONPATH: folder };
  const source = `import sluice_client as sluice
print(sluice.__version__, sum(1 for _ in sluice.rows('${server.url}/items?category=Fair')))`;
  assert.equal((await run(python, ['-c', source], { env })).stdout, `${VERSION} 1610\n`);
  const info = `sluice_client-${VERSION}.dist-info`;
  assert.match(await readFile(join(folder, info, 'METADATA'), 'utf8'), /^Summary: Reads whole sets of rows/m);
  const installed = (await readdir(folder)).sort();
  assert.deepEqual(installed, ['sluice_client', info], 'nothing is installed under another name');
});

test('the same sources make the same clients', async () => {
  const source = `import { createHash } from 'node:crypto';
import { makeClients } from ${JSON.stringify(join(import.meta.dirname, '../../src/build-clients.mjs'))};
const digests = [...(await makeClients())].map(([name, content]) => [name, createHash('sha256').update(content).digest('hex')]);
console.log(JSON.stringify(digests));`;
  const make = async () => (await run(process.execPath, ['--input-type=module', '-e', source])).stdout;
  assert.equal(await make(), await make());
});
