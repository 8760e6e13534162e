import { once } from 'node:events';
import { createServer } from 'node:net';
import { codeOf, reasonOf } from '../thrown.ts';

/** Why a server cannot listen, by the code of the system error. */
const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is taken by another process',
  EACCES: 'this user may not listen there: ports below 1024 need a right of their own',
  EADDRNOTAVAIL: 'the address is not one of this machine',
  ENOTFOUND: 'the name of the host is not known',
};

/** Binds an address briefly and releases it. Rejects with the system error when the address is not available. */
export type Probe = (host: string, port: number) => Promise<void>;

/** Creates the error of a server that cannot listen. Its message tells why; `cause` is the system error. */
export function cannotListen(host: string, port: number, cause: unknown): Error {
  const reason = REASONS[codeOf(cause) ?? ''] ?? reasonOf(cause);
  return new Error(`Cannot listen on ${host}:${port}: ${reason}.`, { cause });
}

/** Creates the same error for a library that does not report why it failed: a probe of the address finds the reason. */
export async function whyNotListening(host: string, port: number, probe: Probe = bind): Promise<Error> {
  try {
    await probe(host, port);
  } catch (error) {
    return cannotListen(host, port, error);
  }
  return new Error(`Cannot listen on ${host}:${port}: uWebSockets.js cannot, but the address can be had.`);
}

async function bind(host: string, port: number): Promise<void> {
  const server = createServer();
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}
