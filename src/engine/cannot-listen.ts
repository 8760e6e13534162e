import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { codeOf, reasonOf } from '../base/error-reason.ts';

/** Why a server cannot listen, by the code of the system error. */
const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is already in use by another process',
  EACCES: 'permission denied; ports below 1024 require a privilege',
  EADDRNOTAVAIL: 'this machine does not have this address',
  ENOTFOUND: 'the host name cannot be resolved',
};

/** Creates the error of a server that cannot listen. Its message has the reason; `cause` is the system error. */
export function cannotListen(host: string, port: number, cause: unknown): Error {
  const reason = REASONS[codeOf(cause) ?? ''] ?? reasonOf(cause);
  return new Error(`Cannot listen on ${host}:${port}: ${reason}.`, { cause });
}

/**
 * Resolves with the port, or with a free port for 0. Rejects with `cannotListen` when the address is not available, before
 * anything is made that a start would leave behind. Servers that share a port need it, too: with SO_REUSEPORT a foreign server could
 * receive some of their requests. (uWebSockets.js does not share a socket whose free port it chose itself.)
 */
export async function freePort(host: string, port: number): Promise<number> {
  const server = createServer();
  server.listen({ host, port, exclusive: true });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw cannotListen(host, port, error);
  }
  const { port: bound } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return bound;
}
