import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { kernelWarning } from '../../src/process/kernel-warning.ts';
import { childServer, cli } from '../support/process/child-server.ts';
import { program } from '../support/process/programs.ts';
import { testEnvironment } from '../support/process/server.ts';
import { temporaryFolder } from '../support/directory.ts';

for (const [HOST, WORKERS, host] of [
  ['127.0.0.1', '1', '127.0.0.1'],
  ['127.0.0.1', '2', '127.0.0.1'],
  ['0.0.0.0', '1', '127.0.0.1'],
  ['::', '1', '[::1]'],
] as const)
  test(`the last line of a start on ${HOST} with ${WORKERS} workers names the page to open`, async (t) => {
    const server = await childServer(t, { MONGODB_URI: '', HOST, WORKERS });
    const last: string[] = [];
    for await (const { msg } of server.log) {
      if (last.length > 0) last.push(msg);
      if (!msg.startsWith('open ')) continue;
      last.push(msg);
      const page = await fetch(msg.slice('open '.length));
      assert.match(await page.text(), /<title>sluice/);
      void server.end('SIGTERM');
    }
    // The line of a worker is written by another process, and can come later.
    const own = new Set(last.filter((msg) => msg !== 'request' && msg !== 'listening'));
    assert.deepEqual([...own], [`open http://${host}:${server.url.port}/`, 'stopping', 'stopped']);
  });

/** Where the server would listen, its process writes a stack and ends. */
const HALT = `data:text/javascript,${encodeURIComponent(`
  import { Server } from 'node:http';
  Server.prototype.listen = () => {
    process.stdout.write(new Error('halted').stack);
    process.exit(3);
  };
`)}`;

/** Starts a server up to there, with this command in front. Resolves with the stack. */
async function halted(t: TestContext, before: readonly string[] = []): Promise<string> {
  const [file, ...args] = [...before, process.execPath, '--import', HALT, await cli(), 'serve'];
  const env = { ...(await testEnvironment(t)), PATH: process.env.PATH, HTTP_ENGINE: 'node' };
  const end: unknown = await promisify(execFile)(file, args, { env }).catch((error: unknown) => error);
  const { code, stdout } = end as { code?: number; stdout: string };
  assert.equal(code, 3);
  return stdout;
}

test('a stack of the built program names the files of src', async (t) => {
  const stack = await halted(t);
  assert.match(stack, /^Error: halted\n/);
  assert.match(stack, /at .*startServer \(file:.*\/src\/server\/main\.ts:\d+:\d+\)/);
  assert.doesNotMatch(stack, /\/dist\//);
});

test('a start opens less than a hundred files', async (t) => {
  const strace = program(t, ['strace'], ['-V']);
  if (strace === null) return;
  const trace = join(await temporaryFolder(t), 'trace');
  await halted(t, [strace, '-f', '-e', 'trace=openat', '-o', trace]);
  const opened = (await readFile(trace, 'utf8')).match(/(dist|node_modules)\/.* = \d+$/gm) ?? [];
  assert.ok(opened.length > 10 && opened.length < 100, opened.join('\n'));
});

test('the log warns of a kernel that keeps megabytes for each slow reader, and of no other kernel', async (t) => {
  const directory = await temporaryFolder(t);
  assert.equal(kernelWarning(directory), null);
  const folder = join(directory, 'net/ipv4');
  await mkdir(folder, { recursive: true });
  const warningOf = async (value: string) => {
    await writeFile(join(folder, 'tcp_notsent_lowat'), `${value}\n`);
    return kernelWarning(directory);
  };
  assert.match((await warningOf('4294967295')) ?? '', /sysctl -w net\.ipv4\.tcp_notsent_lowat=65536\b/);
  assert.equal(await warningOf('65536'), null);
});

test('without WebAssembly (node --jitless) the start says so in one sentence and ends with exit code 1', async (t) => {
  const args = ['--jitless', '--no-warnings', await cli(), 'serve'];
  await assert.rejects(promisify(execFile)(process.execPath, args, { env: await testEnvironment(t) }), {
    code: 1,
    stderr:
      /^sluice: WebAssembly is required, but this Node.js cannot run it: start it without --jitless\.\n$/m,
  });
});
