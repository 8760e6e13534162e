import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { Server as HttpServer } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import type { TestContext } from 'node:test';

/** Lets a server listen on a port of its own, and closes it after the test. Resolves with the port. */
export async function listening(t: TestContext, server: Server): Promise<number> {
  t.after(() => {
    server.close();
    if (server instanceof HttpServer) server.closeAllConnections();
  });
  return listen(server);
}

async function listen(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A port on which no process listens. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/**
 * `count` different ports on which no process listens. They lie below those that a system gives away, which another test may
 * get before the process that these are for.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(servers.map(listenBelow));
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

async function listenBelow(server: Server): Promise<number> {
  for (;;)
    try {
      return await listen(server, randomInt(12_000, 27_000));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
}
