import { bytes } from '../http/reply.ts';
import type { Route } from '../http/route.ts';
import { METRICS_TYPE, metricsText, type MetricValues } from './metrics.ts';

/** GET /metrics: the metrics of all processes of this server, in the text format of Prometheus. */
export function getMetrics(values: () => Promise<readonly MetricValues[]>): Route {
  return {
    method: 'GET',
    path: '/metrics',
    access: 'keyed',
    cost: 'watch',
    right: 'metrics',
    id: 'getMetrics',
    tag: 'Server',
    summary: 'Get metrics',
    description: 'Returns metrics of all processes of this server, in the text format of Prometheus.',
    answers: {
      200: {
        description: 'The current values',
        headers: ['Cache-Control'],
        content: { 'text/plain': { schema: { type: 'string' } } },
      },
    },
    handler: async () => {
      const text = await metricsText(await values());
      return bytes(200, Buffer.from(text), { 'content-type': METRICS_TYPE, 'cache-control': 'no-store' });
    },
  };
}
