import { AppError } from '../errors.ts';
import { prefers } from '../http/prefer.ts';
import type { Input } from '../http/route.ts';
import type { JsonBody } from '../input/body-json.ts';
import { quote } from '../input/query.ts';
import { bodyCheck, invalidBody } from '../input/validate.ts';
import { BOUND, isBound } from '../streams/number.ts';
import { ITEM_PLAN, MAX_KEY_BYTES, readWanted, sortOf } from '../items/query.ts';
import { formatOfType, type StreamType } from '../rows/formats.ts';
import { pathFault } from '../rows/selection.ts';
import { assertFits } from '../streams/form.ts';
import { readStreamQuery } from '../streams/query.ts';
import type { BodyFault } from '../errors.ts';
import { EXPORT_BODY, type ExportOrder } from './export.ts';
import type { ExportRequest } from './job.ts';

const BOUNDS = ['min_price', 'max_price'] as const;

/** Parameters of GET /items/stream that concern only a stream, not a file. */
const OF_STREAMS = ['limit', 'cursor', 'after', 'part', 'checkpoints', 'header', 'consistency', 'at'];

const checkBody = bodyCheck(EXPORT_BODY);

/** Reads the body of an export order. Throws AppError `invalid-body`, which lists every fault. */
export function requestOfBody(json: JsonBody): ExportRequest {
  const bounds = boundsOf(json);
  const body = { ...checkBody(withFiniteBounds(json)), ...bounds } as ExportOrder; // the digits replace every bound
  const { format = 'ndjson', compression = 'none', safe } = body;
  const names = [
    ['category', body.category] as const,
    ...(body.fields ?? []).map((name, n) => [`fields/${n}`, name] as const),
  ];
  const faults: BodyFault[] = names
    .filter(([, name]) => Buffer.byteLength(name ?? '') > MAX_KEY_BYTES)
    .map(([place]) => ({ pointer: `/${place}`, detail: `expected at most ${MAX_KEY_BYTES} bytes of UTF-8` }));
  for (const [n, path] of (body.fields ?? []).entries()) {
    const fault = pathFault(path);
    if (fault)
      faults.push({
        pointer: `/fields/${n}`,
        detail: `expected the name or path of a field; ${quote(path)} ${fault}`,
      });
  }
  if (safe !== undefined && format !== 'csv')
    faults.push({ pointer: '/safe', detail: `expected only with format csv; the format is ${format}` });
  for (const [name, digits] of Object.entries(bounds))
    if (!isBound(digits))
      faults.push({ pointer: `/${name}`, detail: `expected ${BOUND}; got ${quote(digits)}` });
  const sort = sortOrFault(body, faults);
  if (faults.length > 0) throw invalidBody(faults);
  return { ...body, sort, format, compression };
}

/** The bounds of the price, as the digits in the body. */
function boundsOf({ numbers }: JsonBody): Pick<ExportOrder, 'min_price' | 'max_price'> {
  const given = BOUNDS.map((name) => [name, numbers.get(`/${name}`)] as const);
  return Object.fromEntries(given.filter(([, digits]) => digits !== undefined));
}

/**
 * Replaces the bounds by 0 for the schema check. JSON.parse makes Infinity of a number beyond the range of a
 * double, and the schema must see a number.
 */
function withFiniteBounds(json: JsonBody): JsonBody {
  const bounds = Object.keys(boundsOf(json)).map((name) => [name, 0]);
  return {
    ...json,
    value: bounds.length > 0 ? { ...(json.value as object), ...Object.fromEntries(bounds) } : json.value,
  };
}

/**
 * The export that a request for a stream orders by `Prefer: respond-async` (RFC 7240, 4.1). null when the
 * request does not prefer that, or when it has a parameter that only a stream can fulfil. The server then
 * answers with a stream.
 */
export function asynchronousRequest({ request, query: parameters, type }: Input): ExportRequest | null {
  if (request.method !== 'GET' || !prefers(request, 'respond-async')) return null;
  if (OF_STREAMS.some((name) => parameters.has(name))) return null;
  const query = readStreamQuery(parameters, ITEM_PLAN);
  assertFits(query, type as StreamType);
  const { category, min_price, max_price } = readWanted(parameters);
  return {
    ...(category !== undefined && { category }),
    sort: sortOf(readWanted(parameters)),
    ...(min_price !== undefined && { min_price }),
    ...(max_price !== undefined && { max_price }),
    ...(query.fields && { fields: [...query.fields] }),
    format: formatOfType(type as StreamType),
    compression: 'none',
    ...(query.safe !== undefined && { safe: query.safe }),
  };
}

function sortOrFault(body: ExportOrder, faults: BodyFault[]): ExportRequest['sort'] {
  try {
    return sortOf(body);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    faults.push({ pointer: '/sort', detail: error.message });
    return 'id_asc';
  }
}
