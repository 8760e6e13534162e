import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as uws from 'uWebSockets.js';
import { KeepAliveError } from '../keep-alive-error.ts';
import { loadAddon } from './addon.ts';

export type { HttpRequest, HttpResponse, us_listen_socket as ListenSocket } from 'uWebSockets.js';

/** Builds of the author lack the method: they keep idle connections for a fixed time. */
type App = uws.TemplatedApp & { setResponseTimeout?(seconds: number): unknown };

type Library = Pick<typeof uws, 'us_listen_socket_close' | 'us_socket_local_port'> & {
  App(): App;
  /** The types declare it in an enum that does not exist at run time. */
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
};

const require = createRequire(import.meta.url);

/** The largest request head in bytes; a larger one is answered with 431. */
const HEAD_LIMIT = 16_384;

/** A process loads an addon once. Making a fitted copy takes longer than the rest of a start. */
let loaded: Library | null = null;

/** Loads uWebSockets.js; `cacheDirectory`: see AddonOptions. Throws an Error with the reason when it cannot be loaded. */
export function loadLibrary(cacheDirectory: string): Library {
  if (loaded) return loaded;
  // The addon reads this once, from the process's environment. It is the only setting that cannot be passed in.
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(HEAD_LIMIT);
  const folder = dirname(require.resolve('uWebSockets.js'));
  // The package's own uws.js only selects this file.
  const file = join(folder, `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`);
  loaded = loadAddon({ file, cacheDirectory }) as Library;
  return loaded;
}

/** The library counts in steps of so many seconds, and a step may be over at once. */
const STEP_SECONDS = 4;
/** What every build keeps. It is also the time in which a blocked answer must write again: see UwsBody. */
const LEAST_MS = 8_000;
/** The library has 240 steps. */
const MOST_MS = 900_000;

/** Keeps idle connections of an app for at least this long. Throws KeepAliveError where the library cannot. */
export function keepAlive(app: App, ms: number): void {
  const most = app.setResponseTimeout ? MOST_MS : LEAST_MS;
  if (ms > most) throw new KeepAliveError(ms, most);
  app.setResponseTimeout?.(Math.ceil(Math.max(ms, LEAST_MS) / 1000) + STEP_SECONDS);
}
