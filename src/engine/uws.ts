import type { Engine, EngineOptions } from './edge.ts';
import { endExchanges, openExchanges } from './exchange.ts';
import { UwsExchange } from './uws/exchange.ts';
import { keepAlive, loadLibrary, type ListenSocket } from './uws/library.ts';
import { cannotListen, freePort } from './cannot-listen.ts';

export interface UwsOptions extends EngineOptions {
  /** The directory for a copy of the addon that is fitted to an older C library. */
  readonly cacheDirectory: string;
  /** Share the port with other processes that also set this. Otherwise a port that is taken is refused. */
  readonly sharedPort?: boolean;
}

/**
 * Creates the engine on uWebSockets.js. Throws an Error with the reason when the addon cannot be loaded here, and
 * KeepAliveError when it cannot keep idle connections for as long as it should.
 *
 * Known deviations:
 * - A request that is pipelined behind one still being answered closes the connection, also behind one that waits for
 *   its turn because many came at once: see AT_ONCE in exchange.ts.
 * - Bytes above 0x7f in a path, query or header are read as UTF-8 (U+FFFD where they are not UTF-8). At the ends of a
 *   header value, that of Content-Length included, they are trimmed like blanks.
 * - Targets in absolute form are refused.
 */
export function createUwsEngine(options: UwsOptions): Engine {
  const addon = loadLibrary(options.cacheDirectory);
  const exchanges = openExchanges(options);
  const app = addon.App();
  keepAlive(app, options.keepAliveMs);
  app.any('/*', (response, request) => {
    try {
      UwsExchange.accept(exchanges, response, request);
    } catch (error) {
      // An exception thrown into uWebSockets.js ends the process, and so does a request that is never answered.
      options.onError(error, null);
      response.close();
    }
  });
  let listening: ListenSocket | null = null;
  const close = async (graceMs: number) => {
    exchanges.stopping = true;
    if (listening !== null) addon.us_listen_socket_close(listening);
    listening = null;
    await endExchanges(exchanges, graceMs);
    app.close();
  };
  let stopped: Promise<void> | null = null;
  return {
    name: 'uWebSockets.js',
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        const mode = options.sharedPort ? 0 : addon.LIBUS_LISTEN_EXCLUSIVE_PORT;
        const listenOn = app.listen.bind(app) as unknown as ListenOn;
        listenOn(host, port, mode, (socket) => {
          if (socket === false) {
            // The library does not say why: asking for the address does.
            const unknown = new Error('uWebSockets.js failed, although the address is free');
            freePort(host, port).then(() => reject(cannotListen(host, port, unknown)), reject);
            return;
          }
          listening = socket;
          resolve(addon.us_socket_local_port(socket));
        });
      }),
    stop: (graceMs) => (stopped ??= close(graceMs)),
  };
}

/** The package's types do not declare `listen` with a host and options. */
type ListenOn = (
  host: string,
  port: number,
  mode: number,
  callback: (socket: ListenSocket | false) => void,
) => void;
