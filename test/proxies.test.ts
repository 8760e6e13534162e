import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { catalogue } from './support/catalogue.ts';
import { samples } from './support/metrics.ts';
import { program } from './support/programs.ts';
import { RawClient } from './support/raw.ts';
import { serverOn } from './support/server.ts';

const README = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');

/** A proxy as the README configures it: how it is found, what stands around the sample, and how it is run in the foreground. */
const PROXIES = {
  nginx: {
    programs: ['nginx', '/usr/sbin/nginx'],
    version: ['-v'],
    wrap: (sample: string, folder: string) =>
      `pid ${folder}/pid; error_log stderr error; events {} http { access_log off;\n` +
      ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
        .map((name) => `${name}_temp_path ${folder}/${name};`)
        .join(' ') +
      `\n${sample}}\n`,
    run: (file: string, folder: string) => ['-p', folder, '-c', file, '-g', 'daemon off;'],
  },
  haproxy: {
    programs: ['haproxy', '/usr/sbin/haproxy'],
    version: ['-v'],
    wrap: (sample: string) => sample,
    run: (file: string) => ['-db', '-f', file],
  },
} as const;

for (const name of ['nginx', 'haproxy'] as const)
  test(`${name} as the README configures it: streams whole and unbuffered, cuts seen, clients known, nothing smuggled`, async (t) => {
    const found = program(t, PROXIES[name].programs, PROXIES[name].version);
    if (found === null) return;
    const seen: { path: string; client: string }[] = [];
    const server = await serverOn(
      t,
      { MONGODB_URI: '', TRUSTED_PROXIES: 'loopback', STREAM_GRACE: '10 ms' },
      {
        tap: (serve) => async (request) => {
          const reply = await serve(request);
          seen.push({ path: request.path, client: request.notes.client });
          return reply;
        },
      },
    );
    const rows = catalogue(6000, 'string').map(({ document }) => ({ ...document, text: 'x'.repeat(8000) }));
    await server.insert(rows);
    const port = await startProxy(t, name, found, new URL(server.url).port);
    const proxied = `http://127.0.0.1:${port}`;

    const [direct, through] = await Promise.all(
      [server.url, proxied].map(async (url) => (await fetch(`${url}/items/stream`)).text()),
    );
    assert.equal(through, direct);

    // One waits while another stream goes through whole: a proxy that reads ahead would by then have taken all of both.
    const waiting = await RawClient.connect(t, port);
    await waiting
      .send('GET /items/stream HTTP/1.1\r\nHost: x\r\n\r\n')
      .until((came) => came.includes('row-'));
    waiting.socket.pause();
    assert.equal(await (await fetch(`${proxied}/items/stream`)).text(), direct);
    const open = (await samples(server.url)).get('sluice_streams_open');
    assert.equal(open, 1, 'what is not read is not taken from the server');
    waiting.socket.destroy();
    for (let i = 0; i < 50; i++) assert.equal((await fetch(`${proxied}/items?limit=1`)).status, 200);

    await (await fetch(`${proxied}/livez`, { headers: { 'x-forwarded-for': '198.51.100.1' } })).text();
    assert.equal(seen.at(-1)?.client, '127.0.0.1', 'what a client says of itself is not believed');

    for (const attack of SMUGGLED) {
      const client = await RawClient.connect(t, port);
      await client
        .send(attack)
        .until((came) => came.includes('HTTP/1.1 '))
        .catch(() => 'closed without an answer');
      client.socket.destroy();
    }
    assert.equal((await fetch(`${proxied}/livez`)).status, 200);
    assert.deepEqual(
      seen.filter(({ path }) => path === '/smuggled'),
      [],
    );

    // A reader that waits, while the server stops: the proxy must not make the cut look like an end.
    const reader = await RawClient.connect(t, port);
    await reader.send('GET /items/stream HTTP/1.1\r\nHost: x\r\n\r\n').until((came) => came.includes('row-'));
    reader.socket.pause();
    await server.close();
    reader.socket.resume();
    assert.ok(!(await reader.untilClosed()).endsWith('0\r\n\r\n'));
  });

const HIDDEN = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';

/** Requests with another one in them, for whoever reads their length otherwise than the proxy does. */
const SMUGGLED = [
  `POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: ${HIDDEN.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  `POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  `POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  `POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length : ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  `GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  `GET /livez HTTP/1.1\r\nHost: x\r\nX: a\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
];

/** Starts the proxy before the server at this port; its own port, once it takes connections. */
async function startProxy(
  t: TestContext,
  name: keyof typeof PROXIES,
  found: string,
  upstream: string,
): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-proxy-'));
  const port = await freePort();
  const sample = new RegExp('```' + name + '\\n([^]*?)```').exec(README)?.[1];
  assert.ok(sample, `the README has a sample for ${name}`);
  const { wrap, run } = PROXIES[name];
  const text = wrap(sample.replaceAll(':3000', `:${upstream}`).replaceAll('8080', String(port)), folder);
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
