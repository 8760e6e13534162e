import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Logger } from 'pino';
import type { Export } from '../../../src/exports/export.ts';
import { awaited, order } from '../exports/exports.ts';
import { temporaryFolder } from '../directory.ts';
import { filled, type Rows } from '../resources/resources.ts';
import type { ServerOptions } from '../../../src/server/main.ts';
import { serverOn, type Skipped, type StoreName, type TestServer } from '../process/server.ts';
import { bearer, keysText, type KeyGiven } from './keys-text.ts';

export { bearer, keysText };
export type { KeyGiven, Rows };

export interface KeyedServer extends TestServer {
  /** The path of its API_KEYS_FILE. */
  readonly keysFile: string;
  /** The settings that name its store. */
  readonly place: Readonly<Record<string, string>>;
  /** The URI of its MongoDB. Empty for the embedded store. */
  readonly mongo: string;
  /** Sends a request as the client of this name. */
  as(name: string, path: string, options?: RequestInit): Promise<Response>;
  /** Orders an export as this client. Resolves with it once it is complete. */
  exported(name: string, body: object): Promise<Export>;
  /** Writes these keys into the file, and has the server read it. */
  rewrite(keys: readonly KeyGiven[]): Promise<boolean>;
}

/** A server with these keys and resources, items and users on a store of this kind. Null, and the test is skipped, without a mongod. */
export async function keyedServer<S extends StoreName>(
  t: TestContext,
  store: S,
  keys: readonly KeyGiven[],
  resources: readonly Rows[],
  environment: Record<string, string> = {},
  options: ServerOptions & { readonly log?: Logger } = {},
): Promise<KeyedServer | Skipped<S>> {
  const folder = await temporaryFolder(t);
  const file = join(folder, 'keys.json');
  writeFileSync(file, keysText(keys));
  const RESOURCES_FILE = join(folder, 'resources.json');
  writeFileSync(RESOURCES_FILE, '{"resources":{"items":{}}}');
  const place = await filled(t, store, resources);
  if (!place) return null as Skipped<S>;
  const server = await serverOn(
    t,
    { API_KEYS_FILE: file, RESOURCES_FILE, HTTP_ENGINE: 'node', ...place, ...environment },
    options,
  );
  return {
    ...server,
    keysFile: file,
    place,
    mongo: place.MONGODB_URI ?? '',
    as: (name, path, { headers, ...more } = {}) =>
      fetch(server.url + path, { ...more, headers: { ...bearer(name), ...(headers as object) } }),
    exported: async (name, body) => {
      const { id } = await order(server.url, body, bearer(name));
      return awaited(server.url, id, undefined, bearer(name));
    },
    rewrite: (next) => {
      writeFileSync(file, keysText(next));
      return server.reload();
    },
  };
}
