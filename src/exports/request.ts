import { AppError } from '../errors.ts';
import type { Request } from '../http/edge.ts';
import { prefers } from '../http/prefer.ts';
import { parseQuery } from '../http/query.ts';
import { invalidBody } from '../http/validate.ts';
import { MAX_KEY_BYTES, readWanted, sortOf } from '../items/query.ts';
import { streamTypeChooser, FORMAT_OF_TYPE } from '../items/stream-form.ts';
import { readStreamQuery, STREAM_PARAMETERS } from '../items/stream-query.ts';
import type { BodyFault } from '../errors.ts';
import type { ExportBody } from './export.ts';
import type { ExportRequest } from './job.ts';

/** Parameters of GET /items/stream that are about an answer on its way, not about a file. */
const OF_STREAMS = ['limit', 'cursor', 'after', 'part', 'checkpoints', 'header', 'consistency', 'at'];

/** What a body orders. AppError `invalid-body` for what a schema cannot say. */
export function requestOfBody(body: ExportBody): ExportRequest {
  const { format = 'ndjson', compression = 'none', safe } = body;
  const names = [
    ['category', body.category] as const,
    ...(body.fields ?? []).map((name, n) => [`fields/${n}`, name] as const),
  ];
  const faults: BodyFault[] = names
    .filter(([, name]) => Buffer.byteLength(name ?? '') > MAX_KEY_BYTES)
    .map(([place]) => ({ pointer: `/${place}`, detail: `expected at most ${MAX_KEY_BYTES} bytes of UTF-8` }));
  if (safe !== undefined && format !== 'csv')
    faults.push({ pointer: '/safe', detail: `expected with format csv only; the format is ${format}` });
  const sort = sortOrFault(body, faults);
  if (faults.length > 0) throw invalidBody(faults);
  return { ...body, sort, format, compression };
}

/**
 * What a request for a stream orders when it prefers not to wait (RFC 7240, 4.1); null when it does not, or when it asks for
 * what only a stream can give: then it is answered with one.
 */
export function asynchronousRequest(): (request: Request) => ExportRequest | null {
  const typeOf = streamTypeChooser();
  return (request) => {
    if (!prefers(request, 'respond-async')) return null;
    const parameters = parseQuery(request.query, STREAM_PARAMETERS);
    if (OF_STREAMS.some((name) => parameters.has(name))) return null;
    const query = readStreamQuery(parameters);
    const { category, min_price, max_price } = readWanted(parameters);
    return {
      ...(category !== undefined && { category }),
      sort: sortOf(readWanted(parameters)),
      ...(min_price !== undefined && { min_price }),
      ...(max_price !== undefined && { max_price }),
      ...(query.fields && { fields: [...query.fields] }),
      format: FORMAT_OF_TYPE[typeOf(request, query)],
      compression: 'none',
      ...(query.safe !== undefined && { safe: query.safe }),
    };
  };
}

function sortOrFault(body: ExportBody, faults: BodyFault[]): ExportRequest['sort'] {
  try {
    return sortOf(body);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    faults.push({ pointer: '/sort', detail: error.message });
    return 'id_asc';
  }
}
