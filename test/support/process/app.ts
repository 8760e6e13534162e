import { createApp } from '../../../src/server/app.ts';
import type { Client } from '../../../src/access/admission.ts';
import type { Editions } from '../../../src/editions/editions.ts';
import type { AppError } from '../../../src/base/errors.ts';
import { EXPORTS, Jobs } from '../../../src/exports/jobs.ts';
import { OpenStreams } from '../../../src/http/open-streams.ts';
import type { OpenResource } from '../../../src/resources/open.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { directoryFiles } from '../../../src/store/folder/directory.ts';
import type { Slots } from '../../../src/store/turns/slots.ts';
import type { Store } from '../../../src/store/store.ts';
import { usersOf } from '../../../src/users/scope.ts';
import { USERS } from '../../../src/users/row.ts';

/** What the application is asked to do at this moment. */
interface Given {
  /** The reason for which every client is refused. */
  readonly refused?: AppError;
  readonly isDraining?: boolean;
  /** Who asks. Absent: somebody, on a server without keys. */
  readonly client?: Client;
}

/** The application on a store, which a test calls without a network. */
export async function appOn(
  { store, slots }: { readonly store: Store; readonly slots: Slots },
  items: OpenResource,
  document: { readonly withKeys: boolean; readonly limited: boolean },
  given: () => Given = () => ({}),
  editions: Editions | null = null,
) {
  const limits = { maxLimit: 1000, maxOffset: 1000 };
  const common = { transcoder: createTranscoder(slots), limits, cacheControl: 'private, no-cache' };
  const following = { parked: () => () => undefined, heartbeatMs: 15_000, begun: () => 0 };
  return createApp({
    resources: { ...common, ...following, served: { now: [items], mayCome: () => false } },
    users: { ...common, users: usersOf(await store.records(USERS)), now: Date.now },
    exports: {
      jobs: new Jobs({ records: await store.records(EXPORTS), perClient: () => 100, now: () => new Date() }),
      files: directoryFiles('/nowhere'),
      exporter: { offer: () => Promise.resolve(), dropped: () => undefined },
      now: () => new Date(),
      ttlMs: 1,
      linkSeconds: null,
      isTraced: false,
    },
    editions,
    health: {
      store,
      files: {},
      isDraining: () => given().isDraining ?? false,
      faults: () => [],
      log: { warn: () => undefined, error: () => undefined },
    },
    corsOrigin: undefined,
    admissions: {
      admit: () => ({
        client: given().client ?? { name: 'somebody', hasKey: false, key: null, owner: 'somebody' },
        headers: { ratelimit: 'x', 'ratelimit-policy': 'x' },
        refused: given().refused ?? null,
        done: () => undefined,
      }),
      acquire: () => () => undefined,
      idle: (_, until) => until(),
      mayGoOn: () => true,
    },
    readMount: () => '',
    observer: {
      began: () => undefined,
      routed: () => undefined,
      finished: () => undefined,
      waits: () => () => undefined,
    },
    document: { version: '0', ...document },
    metrics: () => Promise.resolve([]),
    streams: new OpenStreams(),
    allStreams: {
      list: () => Promise.resolve([]),
      cut: () => Promise.resolve(null),
      log: { info: () => undefined },
    },
  });
}

/** A sink that takes what `write` takes. */
export const sinkTo = (write: (chunk: Uint8Array) => void | Promise<void>) => ({
  chunkBytes: 16_000,
  signal: new AbortController().signal,
  write,
  flush: () => undefined,
  end: () => undefined,
  fail: (error: unknown) => {
    throw error;
  },
});
