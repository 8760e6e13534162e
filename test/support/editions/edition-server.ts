import assert from 'node:assert/strict';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { ChunkEntry, EditionHead } from '../../../src/base/edition/head.ts';
import { filesOfIndex } from '../../../src/base/edition/index-tree.ts';
import { bookmarkOf } from '../../../src/store/bookmark.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { temporaryFolder } from '../directory.ts';
import { listening } from '../ports.ts';
import { serverOn, type StoreName, type TestServer } from '../process/server.ts';
import { catalogue } from '../resources/catalogue.ts';
import { resourcesFile } from '../resources/resources.ts';
import { until } from '../store/changes.ts';
import { testMongo } from '../store/mongo/mongod.ts';

/** The rows of the first edition, and some that no edition has. */
const ALL = catalogue(3_100, 'string').map(({ document }) => document);
export const ROWS = ALL.slice(0, 3_000);
export const OTHERS = ALL.slice(3_000);

/** A server on a store, with editions of its items. Clients ask it through a proxy. */
export interface ItemEditions {
  readonly server: TestServer;
  readonly proxy: EditionProxy;
  /** The URL of the newest head, through the proxy. */
  readonly url: string;
  /** The folder of the files of the resource. */
  readonly folder: string;
  /** Makes an edition of what the store has now, and resolves with its head, which is another one. */
  publish(): Promise<EditionHead>;
  chunks(head: EditionHead): Promise<readonly ChunkEntry[]>;
  /** Removes a row by its id. */
  remove(id: unknown): Promise<void>;
  /** Removes the files that an edition does not name. */
  keepOnly(head: EditionHead, ...old: readonly EditionHead[]): Promise<void>;
  /** All rows as they are now. */
  stream(): Promise<Buffer>;
}

/** A proxy that notes what is asked. */
interface EditionProxy {
  readonly url: string;
  /** The paths that were asked for. */
  readonly asked: string[];
  /** The bytes of the bodies that went through. */
  readonly sent: { bytes: number };
  /** Answers a request in place of the server, and returns whether it did. */
  handle: (path: string, response: ServerResponse) => boolean | Promise<boolean>;
}

/** Opens a server with the first edition of `ROWS`. Resolves with null and skips the test where there is no such store. */
export async function itemEditions(
  t: TestContext,
  store: StoreName,
  declared: Readonly<Record<string, unknown>> = {},
): Promise<ItemEditions | null> {
  const uri = store === 'mongodb' ? await testMongo(t) : '';
  if (uri === null) return null;
  const folder = await temporaryFolder(t);
  const shared = {
    MONGODB_URI: uri,
    DATA_DIR: folder,
    ...(uri !== '' && { FILES: pathToFileURL(folder).href }),
  };
  const filler = await serverOn(t, shared);
  await filler.insert(ROWS);
  const items = { editions: { every: '1 h', chunk: '16 KiB', ...declared } };
  const RESOURCES_FILE = await resourcesFile(t, { resources: { items } });
  const server = await serverOn(t, { ...shared, RESOURCES_FILE });
  return opened(t, server, join(folder, 'editions/items'));
}

async function opened(t: TestContext, server: TestServer, folder: string): Promise<ItemEditions> {
  const proxy = await proxyOf(t, server.url);
  let newest = await headOf(server, () => true);
  const index = (name: string) => fileOf(server, `${name}.index.json`);
  const filesOf = ({ index: entries }: EditionHead) => filesOfIndex(entries, index);
  return {
    server,
    proxy,
    url: `${proxy.url}/items/edition`,
    folder,
    publish: async () => {
      const asked = await fetch(`${server.url}/items/edition`, { method: 'POST' });
      assert.equal(asked.status, 202);
      const before = JSON.stringify(newest);
      newest = await headOf(server, (head) => JSON.stringify(head) !== before);
      return newest;
    },
    remove: async (id) => {
      const removed = await server.store.items.remove([
        bookmarkOf(BSON.serialize({ _id: id }), { sort: '_id' }),
      ]);
      assert.equal(removed, 1, String(id));
    },
    chunks: async (head) => (await filesOf(head)).chunks,
    keepOnly: async (head, ...old) => {
      const kept = new Set((await filesOf(head)).chunks.map(({ name }) => name));
      for (const one of old) {
        await rm(join(folder, `edition/${one.edition}.json`), { force: true });
        for (const { name } of (await filesOf(one)).chunks)
          if (!kept.has(name)) await rm(join(folder, `chunks/${name}.ndjson.gz`), { force: true });
      }
    },
    stream: async () => Buffer.from(await (await server.get('/items/stream')).arrayBuffer()),
  };
}

/** The newest head that is wanted. Before the first one, requests get 503 with the reason. */
async function headOf(server: TestServer, isWanted: (head: EditionHead) => boolean): Promise<EditionHead> {
  let found: EditionHead | undefined;
  await until('the edition is made', async () => {
    const response = await server.get('/items/edition');
    const body = (await response.json()) as EditionHead & { readonly code?: string };
    assert.ok(response.status === 200 || body.code === 'not-ready', JSON.stringify(body));
    if (response.status === 200) found = body;
    return found !== undefined && isWanted(found);
  });
  return found ?? assert.fail();
}

async function fileOf(server: TestServer, name: string): Promise<Buffer> {
  const response = await server.get(`/items/chunks/${name}`);
  assert.equal(response.status, 200, name);
  return Buffer.from(await response.arrayBuffer());
}

async function proxyOf(t: TestContext, target: string): Promise<EditionProxy> {
  const proxy: EditionProxy & { url: string } = {
    url: '',
    asked: [],
    sent: { bytes: 0 },
    handle: () => false,
  };
  const forward = async (asked: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url: path = '', method = 'GET', headers } = asked;
    proxy.asked.push(path);
    if (await proxy.handle(path, response)) return;
    const upstream = request(`${target}${path}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('data', (piece: Buffer) => (proxy.sent.bytes += piece.length)).pipe(response);
    });
    upstream.on('error', () => response.destroy()); // the client sees the cut
    response.on('close', () => upstream.destroy());
    asked.pipe(upstream);
  };
  const server = createServer((asked, response) => {
    forward(asked, response).catch((error: unknown) => response.destroy(error as Error));
  });
  proxy.url = `http://127.0.0.1:${await listening(t, server)}`;
  return proxy;
}
