import { createServer, type Server } from 'node:http';
import { Server as NetServer, type AddressInfo } from 'node:net';
import type { Engine, EngineOptions } from './edge.ts';
import type { Exchanges } from './exchange.ts';
import { NodeExchange, refuse } from './node/exchange.ts';
import { FairStart } from './fair-start.ts';
import { untilIdle } from './idle.ts';
import { cannotListen } from './cannot-listen.ts';
import { StoppedError, StallTimer } from './stall-timer.ts';

/** The largest request head in bytes; a larger one is answered with 431. */
const HEAD_LIMIT = 16_384;
/**
 * PATIENCE_MS: the time limit for a request's head, and for the next request on a connection. BODY_PATIENCE_MS: the
 * time limit for a whole request.
 */
const PATIENCE_MS = 10_000;
const BODY_PATIENCE_MS = 60_000;

export interface NodeOptions extends EngineOptions {
  /** Share the port with the other workers of a cluster. */
  readonly sharedPort?: boolean;
}

/** Creates the engine on node:http. It is slower than uWebSockets.js and runs wherever Node runs. */
export function createNodeEngine(options: NodeOptions): Engine {
  return new NodeEngine(options);
}

class NodeEngine implements Engine {
  readonly name = 'node:http';
  readonly #exchanges: Exchanges;
  readonly #server: Server;
  readonly #sharedPort: boolean;
  #stopped: Promise<void> | null = null;

  constructor(options: NodeOptions) {
    this.#sharedPort = options.sharedPort ?? false;
    const exchanges: Exchanges = {
      options,
      stallTimer: new StallTimer(options.stallTimeoutMs),
      open: new Set(),
      starts: new FairStart(),
      stopping: false,
    };
    this.#exchanges = exchanges;
    this.#server = createServer(
      {
        maxHeaderSize: HEAD_LIMIT,
        insecureHTTPParser: false,
        requireHostHeader: false, // NodeExchange checks Host, because node's own answer lets a pipelined request run
        headersTimeout: PATIENCE_MS,
        keepAliveTimeout: PATIENCE_MS,
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
    this.#server.on('clientError', (error, socket) => refuse(socket, statusOf(error)));
  }

  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => reject(cannotListen(host, port, error));
      this.#server.once('error', fail);
      this.#server.listen({ host, port, exclusive: !this.#sharedPort }, () => {
        this.#server.off('error', fail);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  stop(graceMs: number): Promise<void> {
    this.#stopped ??= this.#close(graceMs);
    return this.#stopped;
  }

  async #close(graceMs: number): Promise<void> {
    const exchanges = this.#exchanges;
    const server = this.#server;
    exchanges.stopping = true;
    // http's own close also closes idle connections at once, although a request may be on its way on some of them.
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
    await untilIdle(() => exchanges.open.size === 0, exchanges.options.quietMs, graceMs);
    for (const exchange of exchanges.open) exchange.cut(new StoppedError());
    server.closeAllConnections();
    await closed;
  }
}

/** The status for input that node:http could not read as a request. */
function statusOf({ code }: Error & { code?: string }): string {
  if (code === 'HPE_HEADER_OVERFLOW') return '431 Request Header Fields Too Large';
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return '408 Request Timeout';
  return '400 Bad Request';
}
