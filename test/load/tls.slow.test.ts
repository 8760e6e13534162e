import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { pipeline } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { createServer } from 'node:tls';
import type { LoadResult } from '../../src/load/result.ts';
import { selfSigned } from '../support/load/certificate.ts';
import { listening } from '../support/ports.ts';
import { sluice } from '../support/process/commands.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn } from '../support/process/server.ts';

const READERS = '--pages 20/s --pullers 1 --compression gzip --for 1s --ramp 0s --json -'.split(' ');

/** A proxy that speaks TLS with a certificate that it signed itself. Resolves with its port and the certificate's file. */
async function tlsProxy(t: TestContext, target: URL): Promise<{ port: number; certificate: string }> {
  const directory = await temporaryFolder(t);
  const { key, certificate } = await selfSigned(directory);
  const gone = () => undefined; // either side may leave
  const server = createServer({ key: await readFile(key), cert: await readFile(certificate) }, (client) => {
    const upstream = connect(Number(target.port), target.hostname);
    pipeline(client, upstream, gone);
    pipeline(upstream, client, gone);
  });
  server.on('tlsClientError', gone);
  return { port: await listening(t, server), certificate };
}

test('a server behind TLS is loaded when its own certificate is trusted, and not otherwise', async (t) => {
  const server = await serverOn(t, { MONGODB_URI: '' });
  await server.insert(Array.from({ length: 500 }, (_, i) => ({ _id: `i${i}`, category: 'a', price: i })));
  const { port, certificate } = await tlsProxy(t, new URL(server.url));
  // Each is a process of its own, because Node reads NODE_EXTRA_CA_CERTS at its start.
  const loadOf = (host: string, trusted: string) =>
    sluice(['load', `https://${host}:${port}`, ...READERS], { NODE_EXTRA_CA_CERTS: trusted });
  for (const host of ['localhost', '127.0.0.1']) {
    const { code, stdout, said } = await loadOf(host, certificate);
    assert.equal(code, 0, said);
    const { pullers, phases } = JSON.parse(stdout) as LoadResult;
    assert.equal(pullers[0]?.proof, 'proved');
    assert.ok((phases[0]?.counts.ok ?? 0) > 0);
  }
  const { code, stdout, said } = await loadOf('localhost', '');
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(said, /cannot reach https:\/\/localhost:\d+: .*certificate/);
});
