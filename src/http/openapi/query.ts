import { QUERY_TYPES } from '../../input/query-body.ts';
import type { Parameter } from '../../input/parameter.ts';
import type { Schema } from '../../schema.ts';
import type { Route } from '../route.ts';

/**
 * The key of an operation in its path item. OpenAPI 3.1 has none for QUERY, and allows keys of one's own that begin with
 * `x-`.
 */
export function operationKey(method: string): string {
  return method === 'QUERY' ? 'x-query' : method.toLowerCase();
}

/** The parameters of a QUERY as the schema of its content: an object. */
export function queryContent({ query = [], isField }: Pick<Route, 'query' | 'isField'>): Schema {
  const examples = query.flatMap(({ name, doc }) =>
    doc?.example === undefined ? [] : [[name, doc.example] as const],
  );
  const schema = {
    type: 'object',
    description: 'the parameters',
    properties: Object.fromEntries(query.map((parameter) => [parameter.name, memberOf(parameter)])),
    additionalProperties: isField ? { type: ['string', 'number', 'boolean', 'null'] } : false,
  };
  const content = { schema, example: Object.fromEntries(examples.slice(0, 1)) };
  return { required: true, content: Object.fromEntries(QUERY_TYPES.map((type) => [type, content])) };
}

function memberOf({ name, schema, doc }: Parameter<unknown>): Schema {
  if (!doc) throw new TypeError(`the parameter ${name} is not documented`);
  const { description, fallback } = doc;
  return { ...schema, description, ...(fallback !== undefined && { default: fallback }) };
}
