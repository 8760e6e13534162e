import type { Reply } from '../engine/edge.ts';
import { json, NOT_STORED } from '../http/reply.ts';
import { jsonAnswer, type Route } from '../http/route.ts';
import { AppError } from '../errors.ts';
import { PROBLEMS } from '../problems.ts';
import { listOf, namedObject, text, wordOf, type Static } from '../schema.ts';
import { serializerOf } from '../rows/serializers.ts';
import type { Store } from '../store/store.ts';

export interface HealthOptions {
  readonly store: Pick<Store, 'ping'>;
  /** Whether the server is about to stop. A load balancer must then send its requests to another server. */
  readonly isDraining: () => boolean;
  /** What is at fault although requests are answered, one sentence each. */
  readonly faults: () => readonly string[];
}

const HEALTH = namedObject('Health', 'the health of the server', {
  status: wordOf(['alive', 'ready', 'not ready'], 'the state of the server'),
  reasons: listOf('all reasons not to send requests; empty if there is none', text('one reason, in words')),
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

/** GET /readyz: answers 200 when the server takes requests, otherwise 503 with every reason. */
export function getReadiness({ store, isDraining, faults }: HealthOptions): Route {
  return {
    ...PROBE,
    path: '/readyz',
    id: 'getReadiness',
    summary: 'Check readiness',
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
    handler: async () => {
      const { all, some } = await faultsOf(store);
      const reasons = [...(isDraining() ? ['the server is stopping'] : []), ...all];
      return reasons.length === 0
        ? status(200, { status: 'ready', reasons: [...some, ...faults()] })
        : status(
            503,
            { status: 'not ready', reasons },
            { 'retry-after': String(PROBLEMS['store-unavailable'].retry) },
          );
    },
  };
}

/** The faults of the store: `all` rules out every request, `some` rules out only a few kinds of requests. */
async function faultsOf(store: Pick<Store, 'ping'>): Promise<{ all: string[]; some: readonly string[] }> {
  try {
    return { all: [], some: await store.ping() };
  } catch (error) {
    if (error instanceof AppError) return { all: [error.message], some: [] };
    throw error;
  }
}

function status(code: 200 | 503, value: Static<typeof HEALTH>, headers: Reply['headers'] = {}): Reply {
  return json(code, serialize(value), { ...NOT_STORED, ...headers });
}
