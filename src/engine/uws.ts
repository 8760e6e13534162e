import type { Engine, EngineOptions } from './edge.ts';
import { quiet } from './idle.ts';
import type { Exchanges } from './exchange.ts';
import { UwsExchange } from './uws/exchange.ts';
import { loadLibrary, type App, type Library, type ListenSocket } from './uws/library.ts';
import { whyNotListening } from './cannot-listen.ts';
import { StoppedError, Watch } from './stall-timer.ts';

export interface UwsOptions extends EngineOptions {
  /** Where a copy of the addon that is fitted to an older C library may be kept. */
  readonly cacheDirectory: string;
  /** Share the port with other processes that say so too: else one that is taken is refused. */
  readonly sharedPort?: boolean;
}

/**
 * Engine on uWebSockets.js. Throws an Error that says why when the addon cannot be loaded here.
 *
 * Known deviations: a request that is pipelined behind one that is still being answered closes the connection; bytes
 * above 0x7f in a path, query or header are read as UTF-8 (U+FFFD where they are not), and cut off like blanks at the ends
 * of a header value, that of Content-Length included; targets in absolute form are refused.
 */
export function createUwsEngine(options: UwsOptions): Engine {
  return new UwsEngine(loadLibrary(options.cacheDirectory), options);
}

class UwsEngine implements Engine {
  readonly name = 'uWebSockets.js';
  private readonly addon: Library;
  private readonly sharedPort: boolean;
  private readonly exchanges: Exchanges;
  private readonly app: App;
  private listening: ListenSocket | null = null;
  private stopped: Promise<void> | null = null;

  constructor(addon: Library, options: UwsOptions) {
    this.addon = addon;
    this.sharedPort = options.sharedPort ?? false;
    this.exchanges = { options, watch: new Watch(options.stallTimeoutMs), open: new Set(), stopping: false };
    this.app = addon.App();
    this.app.any('/*', (response, request) => {
      try {
        UwsExchange.accept(this.exchanges, response, request);
      } catch (error) {
        // What throws into uWebSockets.js ends the process; so does an answer that nobody gives.
        options.onError(error, null);
        response.close();
      }
    });
  }

  listen(host: string, port: number): Promise<number> {
    const mode = this.sharedPort ? 0 : this.addon.LIBUS_LISTEN_EXCLUSIVE_PORT;
    return new Promise((resolve, reject) => {
      listenOn(this.app, host, port, mode, (socket) => {
        if (socket === false) {
          void whyNotListening(host, port).then(reject);
          return;
        }
        this.listening = socket;
        resolve(this.addon.us_socket_local_port(socket));
      });
    });
  }

  stop(graceMs: number): Promise<void> {
    this.stopped ??= this.close(graceMs);
    return this.stopped;
  }

  private async close(graceMs: number): Promise<void> {
    const { exchanges } = this;
    exchanges.stopping = true;
    if (this.listening !== null) this.addon.us_listen_socket_close(this.listening);
    this.listening = null;
    await quiet(() => exchanges.open.size === 0, exchanges.options.quietMs, graceMs);
    for (const exchange of exchanges.open) exchange.cut(new StoppedError());
    this.app.close();
  }
}

/** `listen` with a host and options is there but not in the package's types. */
function listenOn(
  app: App,
  host: string,
  port: number,
  mode: number,
  callback: (socket: ListenSocket | false) => void,
): void {
  const listen = app.listen.bind(app) as unknown as (
    host: string,
    port: number,
    mode: number,
    callback: (socket: ListenSocket | false) => void,
  ) => void;
  listen(host, port, mode, callback);
}
