import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pino, type Logger } from 'pino';
import { readConfig } from '../../../src/settings/config.ts';
import { startServer, type Server, type ServerOptions } from '../../../src/server/main.ts';
import { ITEM_COLLECTION } from '../../../src/resources/item-collection.ts';
import { BSON, type Document } from '../../../src/store/values/bson.ts';
import type { OwnedCollection } from '../../../src/store/store.ts';
import { withOverrides } from '../store/with-overrides.ts';
import { withThese, type StoreWithItems } from '../store/with-items.ts';
import { AnswerCheck } from '../papers/answer-check.ts';
import { temporaryFolder } from '../directory.ts';
import { testMongo } from '../store/mongo/mongod.ts';

export type StoreName = 'sqlite' | 'mongodb';
export type EngineName = 'uws' | 'node';
/** What a helper resolves with, and skips the test, where there is no such store: null without a mongod. */
export type Skipped<S extends StoreName> = S extends 'sqlite' ? never : null;

export const STORES: readonly StoreName[] = ['sqlite', 'mongodb'];
/** Each store and each engine at least once. */
export const COMBINATIONS: readonly (readonly [StoreName, EngineName])[] = [
  ['sqlite', 'uws'],
  ['sqlite', 'node'],
  ['mongodb', 'uws'],
];

/** The longest time in which a busy machine gives slots back. Milliseconds. */
const RELEASED_MS = 20_000;

type Read = OwnedCollection['read'];

export interface TestServer extends Omit<Server, 'store'> {
  /** Its store, with the items that the server itself has opened. */
  readonly store: StoreWithItems;
  /** What the server does for a read of items, which it gets as the first argument. Absent: that read. */
  readonly instead: { read?: ((read: Read, ...call: Parameters<Read>) => ReturnType<Read>) | undefined };
  /** Sends a GET request. fetch decodes the body. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  insert(documents: readonly Document[]): Promise<void>;
  /** Resolves when no slot is taken: what was read for an answer may be given back after the client has its end. */
  released(): Promise<void>;
  /** Compares all answers with /openapi.json. */
  readonly check: AnswerCheck;
}

/** New settings for one test: a free port, an empty store, no log. `environment` overrides them. */
export async function testEnvironment(
  t: TestContext,
  environment: Record<string, string> = {},
): Promise<NodeJS.ProcessEnv> {
  const directory = await temporaryFolder(t);
  return {
    PORT: '0',
    SAMPLE: 'off',
    LOG_LEVEL: 'silent',
    MAX_LOOP_DELAY: '1 h',
    MAX_WAIT: '1 h',
    DATA_DIR: directory,
    ...environment,
  };
}

/**
 * A complete server on an empty store of this kind. Resolves with null and skips the test when there is no
 * mongod.
 */
export async function testServer<S extends StoreName>(
  t: TestContext,
  store: S,
  engine: EngineName,
  environment: Record<string, string> = {},
): Promise<TestServer | Skipped<S>> {
  const uri = store === 'mongodb' ? await testMongo(t) : '';
  if (uri === null) return null as Skipped<S>;
  return serverOn(t, { HTTP_ENGINE: engine, MONGODB_URI: uri, ...environment });
}

/** A complete server with these settings added to the new settings of a test. */
export async function serverOn(
  t: TestContext,
  environment: Record<string, string>,
  { log, ...options }: ServerOptions & { readonly log?: Logger } = {},
): Promise<TestServer> {
  const settings = await testEnvironment(t, environment);
  const config = readConfig(settings);
  let check = new AnswerCheck(() => [], { withKeys: false, limited: false });
  const tap: ServerOptions['tap'] = (serve, routes) => {
    check = new AnswerCheck(routes, {
      withKeys: config.needsKeys,
      limited: config.RATE_LIMIT !== null,
    });
    return check.watch(serve);
  };
  const opened: { items?: OwnedCollection; again?: OwnedCollection | undefined } = {};
  const instead: TestServer['instead'] = {};
  const tapStore: ServerOptions['tapStore'] = (store) => {
    const tapped = options.tapStore?.(store) ?? store;
    return withOverrides(tapped, {
      open: async (declaration, may) => {
        if (opened.again) return opened.again;
        const rows = await tapped.open(declaration, may);
        if (declaration.collection !== ITEM_COLLECTION.collection) return rows;
        const read: Read = (...call) => rows.read(...call);
        opened.items = withOverrides(rows, {
          read: (...call) => (instead.read ? instead.read(read, ...call) : read(...call)),
        });
        return opened.items;
      },
    });
  };
  const server = await startServer(config, log ?? pino({ level: 'silent' }), {
    quietMs: 20,
    tap,
    ...options,
    tapStore,
  });
  t.after(async () => {
    await server.close();
    assert.deepEqual(check.faults, [], 'every answer matches /openapi.json');
  });
  if (opened.items) {
    opened.again = opened.items; // what the test writes is timed, as all that is opened is
    opened.items = await server.store.open(ITEM_COLLECTION);
    opened.again = undefined;
  }
  const store = withThese(server.store, () => {
    if (opened.items) return opened.items;
    throw new Error('the server has not opened items');
  });
  return {
    ...server,
    store,
    instead,
    check,
    get: (path, headers = {}) => fetch(server.url + path, { headers }),
    insert: async (documents) => {
      const rows = documents.map((document) => BSON.serialize(document));
      const { refused } = await store.items.insert(rows, 'fail');
      if (refused.length > 0) throw new Error(refused[0]?.reason);
    },
    released: async () => {
      const end = performance.now() + RELEASED_MS;
      while (server.slots.taken > 0) {
        assert.ok(performance.now() < end, `${server.slots.taken} slots are taken`);
        await nextTurn();
      }
    },
  };
}
