import { once } from 'node:events';
import { createServer } from 'node:net';

/** What keeps a server from listening, by the code of the system's error. */
const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is taken by another process',
  EACCES: 'this user may not listen there: ports below 1024 need a right of their own',
  EADDRNOTAVAIL: 'the address is not one of this machine',
  ENOTFOUND: 'the name of the host is not known',
};

/** Takes an address for a moment, and gives it back; rejects with the system's error when it cannot be had. */
export type Probe = (host: string, port: number) => Promise<void>;

/** The error of a server that cannot listen, which says why; `cause` is the system's. */
export function cannotListen(host: string, port: number, cause: unknown): Error {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const message = cause instanceof Error ? cause.message : String(cause);
  return new Error(`Cannot listen on ${host}:${port}: ${REASONS[code] ?? message}.`, { cause });
}

/** The same where the library that failed does not say why: a probe of the address finds out. */
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
