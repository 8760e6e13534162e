import { AppError, type BodyFault } from '../errors.ts';
import type { JsonBody } from '../input/body-json.ts';
import { pointer } from '../input/json-scan.ts';
import type { Query } from '../input/query.ts';
import { bodyCheck, invalidBody } from '../input/validate.ts';
import { valueTypes } from '../pages/value-types.ts';
import { shownPath } from '../resources/grammar.ts';
import { givenOf, isField, readTypedPlan, resourcePlan } from '../resources/query.ts';
import type { Resource } from '../resources/resource.ts';
import { formatOfType, type StreamType } from '../rows/formats.ts';
import { assertFits } from '../streams/form.ts';
import { readStreamQuery } from '../streams/query.ts';
import { RESOURCE_EXPORT_BODY } from './export.ts';
import { formFaults, tableOf } from './form-faults.ts';
import type { ResourceRequest } from './job.ts';

const checkBody = bodyCheck(RESOURCE_EXPORT_BODY);

type Filters = ResourceRequest['filters'];
/** The value of a filter, as the schema allows it. */
type Value = string | number | boolean | null;

/**
 * Reads the body of an order of a resource. Its members have the names of the stream's query, each with the text that
 * the query would have; a number, true, false or null stands for its text. Throws AppError `invalid-body`, which lists
 * the faults, `not-indexed` and `ambiguous-value`.
 */
export async function requestOfBody(
  json: JsonBody,
  resource: Resource,
  signal: AbortSignal,
): Promise<ResourceRequest> {
  const body = checkBody(json);
  const { fields, format = 'ndjson', compression = 'none', safe, columns, schema } = body;
  const names = Object.keys(body).filter((name) => !Object.hasOwn(RESOURCE_EXPORT_BODY.properties, name));
  // A name of a stream's parameter cannot ask for a field: see resources/grammar.ts.
  const faults = [...formFaults(body), ...names.filter((name) => !isField(name)).map(notOfExports)];
  if (faults.length > 0) throw invalidBody(faults);
  const values = body as Readonly<Record<string, unknown>>;
  const filters = names.map((name) => [name, textOf(name, values[name] as Value, json)] as const);
  try {
    const chosen = await choose(filters, body.sort, resource, signal);
    return {
      ...chosen,
      ...(fields && { fields }),
      format,
      compression,
      ...(safe !== undefined && { safe }),
      ...(columns !== undefined && { columns }),
      ...(schema && { schema }),
    };
  } catch (error) {
    throw atItsPlace(error, Object.keys(body));
  }
}

/** Reads the parameters of a resource's stream as an order. Throws the AppErrors of that stream. */
export async function requestOfStream(
  query: Query,
  type: StreamType,
  resource: Resource,
  signal: AbortSignal,
): Promise<ResourceRequest> {
  const { fields, safe, ...asked } = readStreamQuery(query, resourcePlan(resource));
  assertFits({ fields, safe, ...asked }, type);
  const filters = [...query].filter(([name]) => isField(name));
  const chosen = await choose(filters, query.get('sort'), resource, signal);
  return {
    ...chosen,
    ...(fields && { fields: [...fields] }),
    format: formatOfType(type),
    compression: 'none',
    ...(safe !== undefined && { safe }),
    ...tableOf({ fields, ...asked }),
  };
}

/** The query of a stream that has the rows of a request. */
export function queryOf({ filters, sort }: Pick<ResourceRequest, 'filters' | 'sort'>): Query {
  return new Map([...filters, ['sort', sort]]);
}

/** Reads the plan once, so that an order that cannot be fulfilled is refused, and keeps how the texts were read. */
async function choose(
  filters: Filters,
  sort: string | undefined,
  resource: Resource,
  signal: AbortSignal,
): Promise<Pick<ResourceRequest, 'resource' | 'filters' | 'sort' | 'types'>> {
  const given = new Map([...filters, ...(sort === undefined ? [] : [['sort', sort] as const])]);
  const [ranged = '_id'] = givenOf(given).bounds.keys();
  const plan = await readTypedPlan(given, null, resource, signal);
  const types = valueTypes(plan).subarray(1); // without their number
  return { resource: resource.name, filters, sort: sort ?? `${shownPath(ranged)}_asc`, types };
}

function notOfExports(name: string): BodyFault {
  const known = Object.keys(RESOURCE_EXPORT_BODY.properties).join(', ');
  return {
    pointer: pointer([name]),
    detail: `unknown field; expected ${known} or fields of the rows, of which one of this name is ${name}.eq`,
  };
}

/** The text of a filter in a query. The digits of a number are those of the body. */
function textOf(name: string, value: Value, { numbers }: JsonBody): string {
  if (value === null) return 'null:';
  return typeof value === 'number' ? (numbers.get(pointer([name])) ?? String(value)) : String(value);
}

/** The problems of parameters. In a body, they are faults at the place of a member. */
const OF_PARAMETERS: ReadonlySet<string> = new Set([
  'invalid-parameter',
  'unknown-parameter',
  'duplicate-parameter',
  'conflicting-parameters',
]);

/** Turns a problem of a parameter into one of the body's member. Other errors stay as they are. */
function atItsPlace(error: unknown, names: readonly string[]): unknown {
  if (!(error instanceof AppError) || !OF_PARAMETERS.has(error.code)) return error;
  const { parameter = '' } = error;
  const name = names.find((one) => one === parameter) ?? names.find((one) => one.startsWith(`${parameter}.`));
  return invalidBody([
    {
      pointer: name === undefined ? '' : pointer([name]),
      detail: error.message.replace(/\.$/, ''),
    },
  ]);
}
