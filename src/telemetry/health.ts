import type { Reply } from '../engine/edge.ts';
import { refusalOf } from '../http/permit.ts';
import { json, NOT_STORED } from '../http/reply.ts';
import { jsonAnswer, type Route } from '../http/route.ts';
import { AppError, storeUnavailable } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { PROBLEMS } from '../base/problems.ts';
import { listOf, namedObject, text, wordOf, type Static } from '../base/schema.ts';
import { serializerOf } from '../rows/serializers.ts';
import type { FileStore } from '../store/files.ts';
import type { Store } from '../store/store.ts';

export interface HealthOptions {
  readonly store: Pick<Store, 'ping'>;
  readonly files: Pick<FileStore, 'ping'>;
  /** Whether the server is about to stop. A load balancer must then send its requests to another server. */
  readonly isDraining: () => boolean;
  /** What is at fault although requests are answered, one sentence each. */
  readonly faults: () => readonly string[];
  /** Gets the faults of the store, each time that they change. */
  readonly log: Pick<Log, 'warn' | 'error'>;
}

const HEALTH = namedObject('Health', 'the health of the server', {
  status: wordOf(['alive', 'ready', 'not ready'], 'the state of the server'),
  reasons: listOf(
    'all reasons not to send requests; empty if there is none',
    text('one reason: a sentence, or its kind'),
  ),
});
const serialize = serializerOf(HEALTH);

const PROBE = { method: 'GET', access: 'probe', cost: 'watch', tag: 'Server' } as const;

/** GET /livez: answers 200 while the process is running. */
export const getLiveness: Route = {
  ...PROBE,
  path: '/livez',
  id: 'getLiveness',
  summary: 'Check liveness',
  answers: {
    200: jsonAnswer('The process is running', HEALTH, ['Cache-Control'], {
      request: '/livez',
      answer: { status: 'alive', reasons: [] },
    }),
  },
  handler: () => status(200, { status: 'alive', reasons: [] }),
};

/** Something that the operator has to mend. `kind` names nothing of this server. */
interface Reason {
  readonly kind: string;
  /** A sentence, which may name resources, collections, indexes and files. */
  readonly detail: string;
}

const STOPPING: Reason = { kind: 'the server is stopping', detail: 'the server is stopping' };

/** What a key must have to be told details. */
const DETAILS = { access: 'keyed', right: 'metrics' } as const;

/** GET /readyz: answers 200 when the server takes requests, otherwise 503. Who may see metrics is told every reason in words. */
export function getReadiness(options: HealthOptions): Route {
  const { isDraining, faults, log } = options;
  let logged = '';
  const logOnce = (reasons: readonly Reason[]): void => {
    const details = reasons.map(({ detail }) => detail);
    if (String(details) !== logged && details.length > 0)
      log.warn({ reasons: details }, 'the store has faults');
    logged = String(details);
  };
  return {
    ...PROBE,
    path: '/readyz',
    id: 'getReadiness',
    summary: 'Check readiness',
    description:
      'On a server with API keys, a key with the right `metrics` gets each reason in words. Others get its kind.',
    answers: {
      200: jsonAnswer('The server accepts requests', HEALTH, ['Cache-Control'], {
        request: '/readyz',
        answer: { status: 'ready', reasons: [] },
      }),
      503: jsonAnswer('The server does not accept requests now; the body lists the reasons', HEALTH, [
        'Cache-Control',
        'Retry-After',
      ]),
    },
    handler: async ({ client }) => {
      const { all, some } = await faultsOf(options);
      logOnce([...all, ...some]);
      const isReady = all.length === 0 && !isDraining();
      const stale = faults().map((detail) => ({ kind: 'declarations with faults', detail }));
      const reasons = isReady ? [...some, ...stale] : [...(isDraining() ? [STOPPING] : []), ...all];
      const isTold = !client.hasKey || (client.key !== null && refusalOf(client, DETAILS) === null);
      const texts = isTold
        ? reasons.map(({ detail }) => detail)
        : [...new Set(reasons.map(({ kind }) => kind))];
      return isReady
        ? status(200, { status: 'ready', reasons: texts })
        : status(
            503,
            { status: 'not ready', reasons: texts },
            { 'retry-after': String(PROBLEMS['store-unavailable'].retry) },
          );
    },
  };
}

/** The faults of the store: `all` rules out every request, `some` rules out only a few kinds of requests. */
async function faultsOf({ store, files, log }: HealthOptions): Promise<{ all: Reason[]; some: Reason[] }> {
  try {
    const [some, ofFiles] = await Promise.all([store.ping(), faultsOfFiles(files)]);
    const unfit = some.map((detail) => ({ kind: PROBLEMS['store-unfit'].title, detail }));
    return { all: [], some: [...unfit, ...ofFiles] };
  } catch (error) {
    if (!(error instanceof AppError))
      log.error({ err: error }, 'the store could not be asked for its health');
    const { code, message } = error instanceof AppError ? error : storeUnavailable(error);
    return { all: [{ kind: PROBLEMS[code].title, detail: message }], some: [] };
  }
}

/** Pages and streams go on without the files of exports. */
async function faultsOfFiles(files: HealthOptions['files']): Promise<readonly Reason[]> {
  try {
    await files.ping?.();
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const detail = `Exports wait, and their files cannot be had: ${error.message}`;
    return [{ kind: PROBLEMS[error.code].title, detail }];
  }
}

function status(code: 200 | 503, value: Static<typeof HEALTH>, headers: Reply['headers'] = {}): Reply {
  return json(code, serialize(value), { ...NOT_STORED, ...headers });
}
