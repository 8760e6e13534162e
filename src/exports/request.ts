import { AppError, type BodyFault } from '../errors.ts';
import type { JsonBody } from '../input/body-json.ts';
import { quote, type Query } from '../input/query.ts';
import { bodyCheck, invalidBody } from '../input/validate.ts';
import { BOUND, isBound } from '../items/price-number.ts';
import { ITEM_PLAN, MAX_KEY_BYTES, readWanted, sortOf } from '../items/query.ts';
import { formatOfType, type StreamType } from '../rows/formats.ts';
import { assertFits } from '../streams/form.ts';
import { readStreamQuery } from '../streams/query.ts';
import { EXPORT_BODY, type ExportOrder } from './export.ts';
import { formFaults, tableOf, tooLong } from './form-faults.ts';
import type { ItemsRequest } from './job.ts';

const BOUNDS = ['min_price', 'max_price'] as const;

const checkBody = bodyCheck(EXPORT_BODY);

/** Reads the body of an order of items. Throws AppError `invalid-body`, which lists every fault. */
export function requestOfBody(json: JsonBody): ItemsRequest {
  const bounds = boundsOf(json);
  const body = { ...checkBody(withFiniteBounds(json)), ...bounds } as ExportOrder; // the digits replace every bound
  const { format = 'ndjson', compression = 'none', category = '' } = body;
  const faults: BodyFault[] = [
    ...(Buffer.byteLength(category) > MAX_KEY_BYTES ? [tooLong('/category')] : []),
    ...formFaults(body),
  ];
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

/** Reads the parameters of GET /items/stream as an order. AppErrors as of that stream. */
export function requestOfStream(parameters: Query, type: StreamType): ItemsRequest {
  const query = readStreamQuery(parameters, ITEM_PLAN);
  assertFits(query, type);
  const { category, min_price, max_price } = readWanted(parameters);
  return {
    ...(category !== undefined && { category }),
    sort: sortOf(readWanted(parameters)),
    ...(min_price !== undefined && { min_price }),
    ...(max_price !== undefined && { max_price }),
    ...(query.fields && { fields: [...query.fields] }),
    format: formatOfType(type),
    compression: 'none',
    ...(query.safe !== undefined && { safe: query.safe }),
    ...tableOf(query),
  };
}

function sortOrFault(body: ExportOrder, faults: BodyFault[]): ItemsRequest['sort'] {
  try {
    return sortOf(body);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    faults.push({ pointer: '/sort', detail: error.message });
    return 'id_asc';
  }
}
