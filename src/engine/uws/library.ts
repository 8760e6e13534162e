import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as uws from 'uWebSockets.js';
import { loadAddon } from './addon.ts';

export type {
  HttpRequest,
  HttpResponse,
  TemplatedApp as App,
  us_listen_socket as ListenSocket,
} from 'uWebSockets.js';

/** What is used of uWebSockets.js. */
export type Library = Pick<typeof uws, 'App' | 'us_listen_socket_close' | 'us_socket_local_port'> & {
  /** The types have it in an enum that is not there at run time. */
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
};

const require = createRequire(import.meta.url);

/** A request's head may have so many bytes: above, 431. */
const HEAD_LIMIT = 16_384;

/** A process has an addon once; to check the bytes of a fitted copy takes longer than all else of a start. */
let loaded: Library | null = null;

/** uWebSockets.js; see AddonOptions for `cacheDirectory`. Throws an Error that says why when it cannot be loaded here. */
export function loadLibrary(cacheDirectory: string): Library {
  if (loaded) return loaded;
  // The addon reads this once, from the process's environment: the only setting that cannot be passed in.
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(HEAD_LIMIT);
  const folder = dirname(require.resolve('uWebSockets.js'));
  // The package's own uws.js does no more than choose this file.
  const file = join(folder, `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`);
  loaded = loadAddon({ file, cacheDirectory }) as Library;
  return loaded;
}
