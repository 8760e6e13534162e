import type { Engine, EngineOptions } from './edge.ts';
import { FairStart } from './fair-start.ts';
import { untilIdle } from './idle.ts';
import type { Exchanges } from './exchange.ts';
import { UwsExchange } from './uws/exchange.ts';
import { loadLibrary, type App, type Library, type ListenSocket } from './uws/library.ts';
import { whyNotListening } from './cannot-listen.ts';
import { StoppedError, StallTimer } from './stall-timer.ts';

export interface UwsOptions extends EngineOptions {
  /** The directory for a copy of the addon that is fitted to an older C library. */
  readonly cacheDirectory: string;
  /** Share the port with other processes that also set this. Otherwise a port that is taken is refused. */
  readonly sharedPort?: boolean;
}

/**
 * Creates the engine on uWebSockets.js. Throws an Error with the reason when the addon cannot be loaded here.
 *
 * Known deviations:
 * - A request that is pipelined behind one still being answered closes the connection, also behind one that waits for
 *   its turn because many came at once: see fair-start.ts.
 * - Bytes above 0x7f in a path, query or header are read as UTF-8 (U+FFFD where they are not UTF-8). At the ends of a
 *   header value, that of Content-Length included, they are trimmed like blanks.
 * - Targets in absolute form are refused.
 */
export function createUwsEngine(options: UwsOptions): Engine {
  return new UwsEngine(loadLibrary(options.cacheDirectory), options);
}

class UwsEngine implements Engine {
  readonly name = 'uWebSockets.js';
  readonly #addon: Library;
  readonly #sharedPort: boolean;
  readonly #exchanges: Exchanges;
  readonly #app: App;
  #listening: ListenSocket | null = null;
  #stopped: Promise<void> | null = null;

  constructor(addon: Library, options: UwsOptions) {
    this.#addon = addon;
    this.#sharedPort = options.sharedPort ?? false;
    this.#exchanges = {
      options,
      stallTimer: new StallTimer(options.stallTimeoutMs),
      open: new Set(),
      starts: new FairStart(),
      stopping: false,
    };
    this.#app = addon.App();
    this.#app.any('/*', (response, request) => {
      try {
        UwsExchange.accept(this.#exchanges, response, request);
      } catch (error) {
        // An exception thrown into uWebSockets.js ends the process, and so does a request that is never answered.
        options.onError(error, null);
        response.close();
      }
    });
  }

  listen(host: string, port: number): Promise<number> {
    const mode = this.#sharedPort ? 0 : this.#addon.LIBUS_LISTEN_EXCLUSIVE_PORT;
    return new Promise((resolve, reject) => {
      listenOn(this.#app, host, port, mode, (socket) => {
        if (socket === false) {
          void whyNotListening(host, port).then(reject);
          return;
        }
        this.#listening = socket;
        resolve(this.#addon.us_socket_local_port(socket));
      });
    });
  }

  stop(graceMs: number): Promise<void> {
    this.#stopped ??= this.#close(graceMs);
    return this.#stopped;
  }

  async #close(graceMs: number): Promise<void> {
    const exchanges = this.#exchanges;
    exchanges.stopping = true;
    if (this.#listening !== null) this.#addon.us_listen_socket_close(this.#listening);
    this.#listening = null;
    await untilIdle(() => exchanges.open.size === 0, exchanges.options.quietMs, graceMs);
    for (const exchange of exchanges.open) exchange.cut(new StoppedError());
    this.#app.close();
  }
}

/** The package's types do not declare `listen` with a host and options. */
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
