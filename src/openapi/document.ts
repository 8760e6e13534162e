import { PROBLEM } from '../base/errors.ts';
import { PROBLEMS, type ProblemCode } from '../base/problems.ts';
import type { Parameter } from '../input/parameter.ts';
import { COMMON_HEADERS, LIMIT_HEADERS, REQUEST_HEADERS, RESPONSE_HEADERS } from '../http/header-docs.ts';
import { COMMON_PROBLEMS, type Answer, type Route, type RouteBody, type Tag } from '../http/route.ts';
import { nameOf, type Schema } from '../base/schema.ts';

export interface DocumentOptions {
  readonly version: string;
  readonly withKeys: boolean;
  /** Whether answers carry RateLimit. */
  readonly limited: boolean;
}

const TAGS: readonly { readonly name: Tag; readonly description: string }[] = [
  { name: 'Items', description: 'Very large collections of items, as pages and as streams.' },
  { name: 'Resources', description: 'Collections that the operator exposes, as pages and as streams.' },
  { name: 'Editions', description: 'Whole collections as files that never change, for any cache.' },
  { name: 'Exports', description: 'Files of rows, made in the background.' },
  { name: 'Users', description: 'Users, read and written one at a time, with strong ETags.' },
  { name: 'Server', description: 'Health, metrics, error pages and documentation of the server.' },
];

const DESCRIPTION = `Serves very large collections of items as pages and streams, in a stable order. A client can resume a stream after any
row.

HEAD works wherever GET does. OPTIONS returns the Allow header. An unsupported method gets 405 with Allow. Responses are compressed as Accept-Encoding allows. Unknown, duplicate and malformed parameters are refused, never ignored. Parameters
that exclude each other get 400, which the schemas of this document cannot express.`;

/** `mount`: the path under which the client reaches this server. */
export function createDocument(routes: readonly Route[], options: DocumentOptions, mount = ''): Schema {
  const components = new Components();
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes)
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route, options, components);
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'sluice',
      version: options.version,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: mount || '/' }],
    ...(options.withKeys && { security: [{ key: [] }] }),
    tags: TAGS.filter(({ name }) => routes.some(({ tag }) => tag === name)),
    paths,
    components: {
      schemas: components.schemas(),
      headers: Object.fromEntries(
        Object.entries({ ...COMMON_HEADERS, ...LIMIT_HEADERS, ...RESPONSE_HEADERS }).map(([name, header]) => [
          name,
          { required: true, ...header },
        ]),
      ),
      ...(options.withKeys && { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } }),
    },
  };
  return document;
}

function operation(route: Route, options: DocumentOptions, components: Components): Schema {
  const parameters = [
    ...Object.entries(route.parameters ?? {}).map(([name, schema]) => pathParameter(name, schema)),
    ...(route.query ?? []).map((parameter) => queryParameter(parameter)),
    ...(route.headers ?? []).map((name) => ({ name, in: 'header', ...REQUEST_HEADERS[name] })),
  ];
  const open = options.withKeys && route.access !== 'keyed';
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    ...(open && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && { requestBody: requestBody(route.body, components) }),
    responses: responses(route, options, components),
  };
}

function pathParameter(name: string, { description, examples, ...schema }: Schema): Schema {
  return {
    name,
    in: 'path',
    required: true,
    description,
    schema: { ...schema, ...(examples !== undefined && { examples }) },
  };
}

function queryParameter({ name, schema, doc }: Parameter<unknown>): Schema {
  if (!doc) throw new TypeError(`the parameter ${name} is not documented`);
  const { description, example, fallback } = doc;
  return {
    name,
    in: 'query',
    description,
    ...(schema.type === 'array' && { style: 'form', explode: false }),
    schema: { ...schema, ...(fallback !== undefined && { default: fallback }) },
    ...(example !== undefined && { example: schema.type === 'array' ? String(example).split(',') : example }),
  };
}

function requestBody({ types, schema, example }: RouteBody, components: Components): Schema {
  const content = { schema: components.referTo(schema), example };
  return { required: true, content: Object.fromEntries(types.map((type) => [type, content])) };
}

function responses(route: Route, options: DocumentOptions, components: Components): Schema {
  const ofAll = Object.keys(COMMON_HEADERS);
  const common = options.limited ? [...ofAll, ...Object.keys(LIMIT_HEADERS)] : ofAll;
  const found: Record<number, Schema> = {};
  for (const [status, answer] of Object.entries(route.answers))
    found[Number(status)] = {
      description: answer.description,
      headers: {
        ...headers([...(answer.isShared ? ofAll : common), ...(answer.headers ?? [])]),
        ...optional(answer.sometimes ?? []),
      },
      ...(answer.content && { content: contents(answer.content, components) }),
    };
  for (const [status, codes] of problemsByStatus(route, options)) {
    const problem = problemResponse(codes, common, components);
    const own = found[status];
    found[status] = own
      ? { ...own, content: { ...(own.content as Schema), ...(problem.content as Schema) } }
      : problem;
  }
  found[431] = HEAD_TOO_LARGE;
  return found;
}

/** The HTTP engine sends this answer before there is a request, so it has none of the usual headers. */
const HEAD_TOO_LARGE: Schema = {
  description: 'The request line and headers are too large (more than 16 KiB)',
};

/** The problem codes that an operation can meet, by status. */
export function problemsByStatus(
  { problems = [], access, right, resource }: Pick<Route, 'problems' | 'access' | 'right' | 'resource'>,
  { withKeys, limited }: Pick<DocumentOptions, 'withKeys' | 'limited'>,
): Map<number, ProblemCode[]> {
  const codes = new Set([...COMMON_PROBLEMS, ...problems]);
  const isKeyed = withKeys && access === 'keyed';
  if (!isKeyed) for (const code of ['unauthorized', 'key-server-unavailable'] as const) codes.delete(code);
  if (withKeys) codes.delete('misdirected-request');
  if (isKeyed && right !== 'any') codes.add('forbidden');
  if (isKeyed && resource !== undefined) codes.add('not-found'); // for keys that do not open it
  if (!limited) codes.delete('rate-limited');
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of Object.keys(PROBLEMS) as ProblemCode[]) {
    const { status } = PROBLEMS[code];
    if (codes.has(code)) byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}

function problemResponse(
  codes: readonly ProblemCode[],
  common: readonly string[],
  components: Components,
): Schema {
  const retry = codes.every((code) => 'retry' in PROBLEMS[code]);
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}`).join('; '),
    headers: headers([...common, 'Cache-Control', ...(retry ? ['Retry-After'] : [])]),
    content: {
      'application/problem+json': {
        schema: { allOf: [components.referTo(PROBLEM), { properties: { code: { enum: codes } } }] },
      },
    },
  };
}

function contents(content: NonNullable<Answer['content']>, components: Components): Schema {
  return Object.fromEntries(
    Object.entries(content).map(([type, { schema, lines = [], example }]) => {
      for (const line of lines) components.referTo(line);
      const bundled = example && { summary: `GET ${example.request}`, value: example.answer };
      return [type, { schema: components.referTo(schema), ...(bundled && { examples: { bundled } }) }];
    }),
  );
}

function headers(names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function optional(names: NonNullable<Answer['sometimes']>): Schema {
  return Object.fromEntries(names.map((name) => [name, RESPONSE_HEADERS[name]]));
}

/** Collects the schemas that have a name. Each is listed once and referenced wherever it is used. */
class Components {
  readonly #named = new Map<string, object>();

  /** Returns a copy in which named schemas are replaced by references. */
  referTo(schema: unknown): unknown {
    if (typeof schema !== 'object' || schema === null) return schema;
    const name = nameOf(schema);
    if (name === undefined) return this.#inside(schema);
    this.#named.set(name, schema);
    return { $ref: `#/components/schemas/${name}` };
  }

  /** Returns all referenced schemas by name. Resolving one may add further schemas. */
  schemas(): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    // The iteration of a map also visits entries added during it.
    for (const [name, schema] of this.#named) found[name] = this.#inside(schema);
    return found;
  }

  #inside(schema: object): unknown {
    if (Array.isArray(schema)) return schema.map((entry) => this.referTo(entry));
    return Object.fromEntries(Object.entries(schema).map(([key, entry]) => [key, this.referTo(entry)]));
  }
}
