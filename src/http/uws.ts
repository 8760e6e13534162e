import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as uws from 'uWebSockets.js';
import { loadAddon } from './uws/addon.ts';
import type { Engine, EngineOptions } from './edge.ts';
import { quiet } from './quiet.ts';
import type { Exchanges } from './exchange.ts';
import { UwsExchange } from './uws/exchange.ts';
import { StoppedError, Watch } from './watch.ts';

export type { HttpRequest, HttpResponse } from 'uWebSockets.js';

type Uws = Pick<typeof uws, 'App' | 'us_listen_socket_close' | 'us_socket_local_port'> & {
  /** The types have it in an enum that is not there at run time. */
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
};

const require = createRequire(import.meta.url);

/** A request's head may have so many bytes: above, 431. */
const HEAD_LIMIT = 16_384;

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
  return new UwsEngine((loaded ??= load(options.cacheDirectory)), options);
}

/** A process has an addon once; to check the bytes of a fitted copy takes longer than all else of a start. */
let loaded: Uws | null = null;

function load(cacheDirectory: string): Uws {
  // The addon reads this once, from the process's environment: the only setting that cannot be passed in.
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(HEAD_LIMIT);
  const folder = dirname(require.resolve('uWebSockets.js'));
  // The package's own uws.js does no more than choose this file.
  const file = join(folder, `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`);
  return loadAddon({ file, cacheDirectory }) as Uws;
}

class UwsEngine implements Engine {
  readonly name = 'uWebSockets.js';
  private readonly addon: Uws;
  private readonly sharedPort: boolean;
  private readonly exchanges: Exchanges;
  private readonly app: uws.TemplatedApp;
  private listening: uws.us_listen_socket | null = null;
  private stopped: Promise<void> | null = null;

  constructor(addon: Uws, options: UwsOptions) {
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
          reject(
            new Error(`Cannot listen on ${host}:${port}: the address is taken or not one of this machine.`),
          );
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
  app: uws.TemplatedApp,
  host: string,
  port: number,
  mode: number,
  callback: (socket: uws.us_listen_socket | false) => void,
): void {
  const listen = app.listen.bind(app) as unknown as (
    host: string,
    port: number,
    mode: number,
    callback: (socket: uws.us_listen_socket | false) => void,
  ) => void;
  listen(host, port, mode, callback);
}
