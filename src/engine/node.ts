import { createServer } from 'node:http';
import { Server as NetServer, type AddressInfo } from 'node:net';
import type { Engine, EngineOptions } from './edge.ts';
import { endExchanges, openExchanges } from './exchange.ts';
import { LoopTurns } from '../store/turns/loop-turns.ts';
import { Arrivals } from './node/arrivals.ts';
import { NodeExchange } from './node/exchange.ts';
import { cannotListen } from './cannot-listen.ts';

/** The largest request head in bytes; a larger one is answered with 431. */
const HEAD_LIMIT = 16_384;
/** Time limits: for a request's head, and for a whole request. */
const PATIENCE_MS = 10_000;
const BODY_PATIENCE_MS = 60_000;

interface NodeOptions extends EngineOptions {
  /** Share the port with the other workers of a cluster. */
  readonly sharedPort?: boolean;
}

/** Creates the engine on node:http. It is slower than uWebSockets.js and runs wherever Node runs. */
export function createNodeEngine(options: NodeOptions): Engine {
  const exchanges = openExchanges(options);
  const server = createServer(
    {
      maxHeaderSize: HEAD_LIMIT,
      insecureHTTPParser: false,
      requireHostHeader: false, // NodeExchange checks Host, because node's own answer lets a pipelined request run
      headersTimeout: PATIENCE_MS,
      keepAliveTimeout: options.keepAliveMs,
      requestTimeout: BODY_PATIENCE_MS,
      connectionsCheckingInterval: PATIENCE_MS / 4,
    },
    (request, response) => {
      try {
        NodeExchange.accept(exchanges, request, response);
      } catch (error) {
        options.onError(error, null);
        response.destroy();
      }
    },
  );
  const turns = new LoopTurns();
  server.on('connection', (socket) => Arrivals.pace(socket, turns));
  server.on('clientError', (error, socket) => NodeExchange.refuse(socket, statusOf(error)));
  const close = async (graceMs: number) => {
    exchanges.stopping = true;
    // http's own close also closes idle connections at once, although a request may be on its way on some of them.
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
    await endExchanges(exchanges, graceMs);
    server.closeAllConnections();
    await closed;
  };
  let stopped: Promise<void> | null = null;
  return {
    name: 'node:http',
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        const fail = (error: Error) => reject(cannotListen(host, port, error));
        server.once('error', fail);
        server.listen({ host, port, exclusive: !options.sharedPort }, () => {
          server.off('error', fail);
          resolve((server.address() as AddressInfo).port);
        });
      }),
    stop: (graceMs) => (stopped ??= close(graceMs)),
  };
}

/** The status for input that node:http could not read as a request. */
function statusOf({ code }: Error & { code?: string }): string {
  if (code === 'HPE_HEADER_OVERFLOW') return '431 Request Header Fields Too Large';
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return '408 Request Timeout';
  return '400 Bad Request';
}
