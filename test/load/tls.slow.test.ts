import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { createServer } from 'node:tls';
import type { LoadResult } from '../../src/load/result.ts';
import { selfSigned } from '../support/load/certificate.ts';
import { folder } from '../support/pull/pulling.ts';
import { serverOn } from '../support/process/server.ts';

const CLI = join(import.meta.dirname, '../../src/process/cli.ts');

/** A proxy that speaks TLS with a certificate that it signed itself. Resolves with its port and the certificate's file. */
async function tlsProxy(t: TestContext, target: URL): Promise<{ port: number; certificate: string }> {
  const directory = await folder(t);
  const { key, certificate } = await selfSigned(directory);
  const gone = () => undefined; // either side may leave
  const server = createServer({ key: await readFile(key), cert: await readFile(certificate) }, (client) => {
    const upstream = connect(Number(target.port), target.hostname);
    pipeline(client, upstream, gone);
    pipeline(upstream, client, gone);
  });
  server.on('tlsClientError', gone);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, certificate };
}

/** Runs `sluice load` as a process of its own, because Node reads NODE_EXTRA_CA_CERTS at its start. */
async function loadOf(
  url: string,
  trusted: string | null,
): Promise<{ code: number; out: string; said: string }> {
  const readers = [
    '--pages',
    '20/s',
    '--pullers',
    '1',
    '--compression',
    'gzip',
    '--for',
    '1s',
    '--ramp',
    '0s',
  ];
  const words = ['--import', 'tsx', CLI, 'load', url, ...readers, '--json', '-'];
  const child = spawn(process.execPath, words, {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: trusted ?? '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, said, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ]);
  return { code, out, said };
}

test('a server behind TLS is loaded when its own certificate is trusted, and not otherwise', async (t) => {
  const server = await serverOn(t, { MONGODB_URI: '' });
  await server.insert(Array.from({ length: 500 }, (_, i) => ({ _id: `i${i}`, category: 'a', price: i })));
  const { port, certificate } = await tlsProxy(t, new URL(server.url));
  for (const host of ['localhost', '127.0.0.1']) {
    const { code, out, said } = await loadOf(`https://${host}:${port}`, certificate);
    assert.equal(code, 0, said);
    const { pullers, phases } = JSON.parse(out) as LoadResult;
    assert.equal(pullers[0]?.proof, 'proved');
    assert.ok((phases[0]?.counts.ok ?? 0) > 10);
  }
  const { code, out, said } = await loadOf(`https://localhost:${port}`, null);
  assert.deepEqual([code, out], [1, '']);
  assert.match(said, /cannot reach https:\/\/localhost:\d+: .*certificate/);
});
