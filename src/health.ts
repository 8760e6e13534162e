import type { Reply } from './http/edge.ts';
import { json } from './http/reply.ts';
import { parseQuery } from './http/query.ts';
import type { Route } from './http/router.ts';
import { jsonAnswer } from './openapi/operation.ts';
import { AppError } from './errors.ts';
import { HEALTH, type HealthDocument } from './serialize/schemas.ts';
import { serializers } from './serialize/serializers.ts';
import type { Store } from './store/store.ts';

export interface HealthOptions {
  readonly store: Pick<Store, 'ping'>;
  /** Whether the server is about to stop: whoever sends it requests shall look for another one. */
  readonly isDraining: () => boolean;
}

const NOT_CACHED = { 'cache-control': 'no-store' };
const LOOK_AGAIN_SECONDS = '5';

/** GET /livez: the process answers. GET /readyz: 200 when requests are welcome here, else 503 with every reason. */
export function healthRoutes({ store, isDraining }: HealthOptions): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/livez',
      doc: {
        id: 'getLiveness',
        tag: 'Server',
        open: true,
        summary: 'Whether the process answers',
        answers: {
          200: jsonAnswer('It does', HEALTH, ['Cache-Control'], {
            request: '/livez',
            answer: { status: 'alive', reasons: [] },
          }),
        },
      },
      handler: (request) => {
        parseQuery(request.query, []);
        return Promise.resolve(status(200, { status: 'alive', reasons: [] }));
      },
    },
    {
      method: 'GET',
      path: '/readyz',
      doc: {
        id: 'getReadiness',
        tag: 'Server',
        open: true,
        summary: 'Whether requests are welcome',
        answers: {
          200: jsonAnswer('They are', HEALTH, ['Cache-Control'], {
            request: '/readyz',
            answer: { status: 'ready', reasons: [] },
          }),
          503: jsonAnswer('They are not, for all these reasons', HEALTH, ['Cache-Control', 'Retry-After']),
        },
      },
      handler: async (request) => {
        parseQuery(request.query, []);
        const { all, some } = await faultsOf(store);
        const reasons = [...(isDraining() ? ['the server is stopping'] : []), ...all];
        return reasons.length === 0
          ? status(200, { status: 'ready', reasons: [...some] })
          : status(503, { status: 'not ready', reasons }, { 'retry-after': LOOK_AGAIN_SECONDS });
      },
    },
  ];
}

/** Why no request is welcome, and what cannot be asked for though the rest can. */
async function faultsOf(store: Pick<Store, 'ping'>): Promise<{ all: string[]; some: readonly string[] }> {
  try {
    return { all: [], some: await store.ping() };
  } catch (error) {
    if (error instanceof AppError) return { all: [error.message], some: [] };
    throw error;
  }
}

function status(code: 200 | 503, value: HealthDocument, headers: Reply['headers'] = {}): Reply {
  return json(code, serializers.health(value), { ...NOT_CACHED, ...headers });
}
