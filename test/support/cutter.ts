import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** A proxy before a server that cuts each connection once so many bytes of its answers came by. */
export interface Cutter {
  readonly url: string;
  /** Bytes of answer, heads included, that the connections from now on may have. */
  after: number;
}

export async function startCutter(t: TestContext, url: string): Promise<Cutter> {
  const { hostname, port } = new URL(url);
  const cutter = { url: '', after: Infinity };
  const proxy = createServer((client) => {
    let left = cutter.after;
    const server = connect(Number(port), hostname);
    const close = () => {
      client.destroy();
      server.destroy();
    };
    client.on('error', close).on('close', close).pipe(server);
    server.on('error', close).on('close', close);
    server.on('data', (bytes) => {
      client.write(bytes.subarray(0, Math.max(0, left)));
      left -= bytes.length;
      if (left <= 0) client.end(close);
    });
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => proxy.close());
  cutter.url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return cutter;
}

/** What came of an answer, and whether it ended cleanly. */
export async function fetchUntilCut(
  url: string,
  headers: Record<string, string> = {},
): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  const pieces: Uint8Array[] = [];
  try {
    const response = await fetch(url, { headers: { connection: 'close', ...headers } });
    if (response.status !== 200) throw new TypeError(`status ${response.status}: ${await response.text()}`);
    for await (const piece of response.body ?? []) pieces.push(piece as Uint8Array);
    return { bytes: Buffer.concat(pieces), whole: true };
  } catch (error) {
    // undici's word for a connection that was cut, before or in the body
    if (!(error instanceof TypeError) || !/terminated|fetch failed/.test(error.message)) throw error;
    return { bytes: Buffer.concat(pieces), whole: false };
  }
}
