import { parseQuery } from '../http/query.ts';
import { bytes } from '../http/reply.ts';
import type { Route } from '../http/router.ts';
import { METRICS_TYPE, metricsText, type MetricValues } from './metrics.ts';

/** GET /metrics: what all processes of this server count, in the text format of Prometheus. */
export function metricsRoutes(values: () => Promise<readonly MetricValues[]>): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/metrics',
      doc: {
        id: 'getMetrics',
        tag: 'Server',
        summary: 'What the server counts',
        description: 'In the text format of Prometheus, for all processes of this server.',
        answers: {
          200: {
            description: 'The present values',
            headers: ['Cache-Control'],
            content: { 'text/plain': { schema: { type: 'string' } } },
          },
        },
      },
      handler: async (request) => {
        parseQuery(request.query, []);
        const text = await metricsText(await values());
        return bytes(200, Buffer.from(text), { 'content-type': METRICS_TYPE, 'cache-control': 'no-store' });
      },
    },
  ];
}
