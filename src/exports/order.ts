import { prefers } from '../http/prefer.ts';
import type { Input } from '../http/route.ts';
import type { JsonBody } from '../input/body-json.ts';
import { quote } from '../input/query.ts';
import { invalidBody } from '../input/validate.ts';
import type { StreamType } from '../rows/formats.ts';
import { Type, type TSchema } from '../schema.ts';
import { EXPORT_BODY, RESOURCE_EXPORT_BODY } from './export.ts';
import { ITEMS, type ExportRequest } from './job.ts';
import type { ExportSource, ExportSources } from './source.ts';

/** Parameters of a stream that concern only a stream, not a file. */
const OF_STREAMS = [
  'limit',
  'cursor',
  'after',
  'part',
  'checkpoints',
  'follow',
  'header',
  'consistency',
  'at',
];

/** The body of an order, for /openapi.json. */
export function orderSchema(sources: ExportSources): TSchema {
  if (sources.size === 1) return EXPORT_BODY;
  return Type.Union([EXPORT_BODY, RESOURCE_EXPORT_BODY], {
    description: 'an object that says which rows of which resource to export, and how',
  });
}

/** Reads the body of an order. Throws AppError `invalid-body`, and the problems of reading a plan. */
export async function requestOf(
  json: JsonBody,
  sources: ExportSources,
  signal: AbortSignal,
): Promise<ExportRequest> {
  const { resource = ITEMS } = (json.value ?? {}) as { readonly resource?: unknown };
  const source = sources.get(String(resource));
  if (source && typeof resource === 'string') return source.ofBody(json, signal);
  const known = [...sources.keys()].join(', ');
  const given = typeof resource === 'string' ? quote(resource) : 'no string';
  throw invalidBody([{ pointer: '/resource', detail: `expected one of ${known}; got ${given}` }]);
}

/**
 * The export that a request for a stream orders by `Prefer: respond-async` (RFC 7240, 4.1). null when the
 * request does not prefer that, or when it has a parameter that only a stream can fulfil. The server then
 * answers with a stream.
 */
export async function asynchronousRequest(
  { request, query, type }: Input,
  source: ExportSource,
): Promise<ExportRequest | null> {
  if (request.method !== 'GET' || !prefers(request, 'respond-async')) return null;
  if (OF_STREAMS.some((name) => query.has(name))) return null;
  return source.ofStream(query, type as StreamType, request.signal);
}
