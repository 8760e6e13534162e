import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { documentText } from './documents.ts';
import { freePort } from './free-port.ts';

/** A proxy with its sample in docs/ops: its program, the text around the sample, and its start in the foreground. */
export const PROXIES = {
  nginx: {
    sample: 'docs/ops/nginx.conf',
    programs: ['nginx', '/usr/sbin/nginx'],
    version: ['-v'],
    wrap: (sample: string, folder: string) =>
      `pid ${folder}/pid; error_log stderr crit; events {} http { access_log off;\n` +
      ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
        .map((name) => `${name}_temp_path ${folder}/${name};`)
        .join(' ') +
      `\n${sample}}\n`,
    run: (file: string, folder: string) => ['-p', folder, '-c', file, '-g', 'daemon off;'],
  },
  haproxy: {
    sample: 'docs/ops/haproxy.cfg',
    programs: ['haproxy', '/usr/sbin/haproxy'],
    version: ['-v'],
    wrap: (sample: string) => sample,
    run: (file: string) => ['-db', '-f', file],
  },
} as const;

/**
 * Starts the proxy before the server at this port. Resolves with the proxy's port once it accepts connections. `change`
 * changes the sample configuration.
 */
export async function startProxy(
  t: TestContext,
  name: keyof typeof PROXIES,
  found: string,
  upstream: string,
  change: (sample: string) => string = (sample) => sample,
): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-proxy-'));
  const port = await freePort();
  const { sample, wrap, run } = PROXIES[name];
  const text = wrap(
    change(documentText(sample)).replaceAll(':3000', `:${upstream}`).replaceAll('8080', String(port)),
    folder,
  );
  const file = join(folder, 'conf');
  await writeFile(file, text);
  const child = spawn(found, run(file, folder), { stdio: ['ignore', 'inherit', 'inherit'] });
  t.after(async () => {
    if (child.exitCode === null) {
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await gone;
    }
    await rm(folder, { recursive: true, force: true });
  });
  while (!(await takesConnections(port))) {
    assert.equal(child.exitCode, null, `${name} runs`);
    await new Promise(setImmediate);
  }
  return port;
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
