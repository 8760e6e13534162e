import { PROBLEMS, type ProblemCode } from '../errors.ts';
import type { Parameter } from '../http/parameter.ts';
import type { Route } from '../http/router.ts';
import { PROBLEM } from '../serialize/schemas.ts';
import { COMMON_HEADERS, LIMIT_HEADERS, REQUEST_HEADERS, RESPONSE_HEADERS } from './headers.ts';
import { COMMON_PROBLEMS, type Answer, type Content, type Operation, type Tag } from './operation.ts';
import type { Schema } from './schema.ts';
import { COMPONENTS } from './components.ts';

export interface DocumentOptions {
  readonly version: string;
  /** Whether requests need an API key. */
  readonly withKeys: boolean;
  /** Whether answers carry RateLimit. */
  readonly limited: boolean;
}

const TAGS: readonly { readonly name: Tag; readonly description: string }[] = [
  { name: 'Items', description: 'Very large sets, as pages and as streams.' },
  { name: 'Exports', description: 'Long work in the background, into files.' },
  { name: 'Users', description: 'Read and written one by one, with strong ETags.' },
  { name: 'Server', description: 'What operators and their machines ask.' },
];

const DESCRIPTION = `Hands out very large item sets as pages and streams, in an order that does not shift, resumable at any row.

HEAD works wherever GET does. OPTIONS answers Allow. A method that a resource does not take is a 405 with Allow. Answers are
compressed by Accept-Encoding. Unknown, duplicate and malformed parameters are refused, never ignored. Parameters that
exclude each other are a 400, which this document cannot say in a schema.`;

/** The OpenAPI 3.1 document of these routes. */
export function createDocument(routes: readonly Route[], options: DocumentOptions): Schema {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes)
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route, options);
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'sluice',
      version: options.version,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    ...(options.withKeys && { security: [{ key: [] }] }),
    tags: TAGS.filter(({ name }) => routes.some(({ doc }) => doc.tag === name)),
    paths,
    components: {
      schemas: Object.fromEntries(
        Object.entries(COMPONENTS).map(([name, schema]) => [name, withReferences(schema, schema)]),
      ),
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

function operation({ path, method, doc, accepts }: Route, options: DocumentOptions): Schema {
  const parameters = [
    ...Object.entries(doc.path ?? {}).map(([name, schema]) => pathParameter(name, schema)),
    ...(doc.query ?? []).map((parameter) => queryParameter(parameter)),
    ...(doc.headers ?? []).map((name) => ({ name, in: 'header', ...REQUEST_HEADERS[name] })),
  ];
  const open = options.withKeys && doc.open;
  return {
    operationId: doc.id,
    tags: [doc.tag],
    summary: doc.summary,
    ...(doc.description !== undefined && { description: doc.description }),
    ...(open && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(doc.body && { requestBody: requestBody(doc.body, accepts, `${method} ${path}`) }),
    responses: responses(doc, options),
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

function requestBody(
  { schema, example }: NonNullable<Operation['body']>,
  accepts: readonly string[] | undefined,
  route: string,
): Schema {
  if (!accepts) throw new TypeError(`${route} has a body, and no media types for it`);
  const content = { schema: withReferences(schema), example };
  return { required: true, content: Object.fromEntries(accepts.map((type) => [type, content])) };
}

function responses(doc: Operation, options: DocumentOptions): Schema {
  const common = Object.keys({ ...COMMON_HEADERS, ...(options.limited && LIMIT_HEADERS) });
  const found: Record<number, Schema> = {};
  for (const [status, answer] of Object.entries(doc.answers))
    found[Number(status)] = {
      description: answer.description,
      headers: { ...headers([...common, ...(answer.headers ?? [])]), ...optional(answer.sometimes ?? []) },
      ...(answer.content && { content: contents(answer.content) }),
    };
  for (const [status, codes] of problemsByStatus(doc, options)) {
    const problem = problemResponse(codes, common);
    const own = found[status];
    found[status] = own
      ? { ...own, content: { ...(own.content as Schema), ...(problem.content as Schema) } }
      : problem;
  }
  found[431] = HEAD_TOO_LARGE;
  return found;
}

/** Said by the HTTP engine, before there is a request: without any of the headers that answers have. */
const HEAD_TOO_LARGE: Schema = { description: 'The head of the request is too large (16 KiB)' };

/** The codes that an operation can meet, by their status. */
export function problemsByStatus(
  { problems = [], open }: Operation,
  { withKeys, limited }: Pick<DocumentOptions, 'withKeys' | 'limited'>,
): Map<number, ProblemCode[]> {
  const codes = new Set([...COMMON_PROBLEMS, ...problems]);
  if (!withKeys || open) codes.delete('unauthorized');
  if (!limited) codes.delete('rate-limited');
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of Object.keys(PROBLEMS) as ProblemCode[]) {
    const { status } = PROBLEMS[code];
    if (codes.has(code)) byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}

/** Says when to come again: these codes always do. */
const WITH_RETRY_AFTER: readonly ProblemCode[] = [
  'rate-limited',
  'too-many-streams',
  'too-many-exports',
  'overloaded',
  'store-unavailable',
  'store-unfit',
];

function problemResponse(codes: readonly ProblemCode[], common: readonly string[]): Schema {
  const retry = codes.every((code) => WITH_RETRY_AFTER.includes(code));
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}`).join('; '),
    headers: headers([...common, 'Cache-Control', ...(retry ? ['Retry-After'] : [])]),
    content: {
      'application/problem+json': {
        schema: { allOf: [withReferences(PROBLEM), { properties: { code: { enum: codes } } }] },
      },
    },
  };
}

function contents(content: NonNullable<Answer['content']>): Schema {
  return Object.fromEntries(
    Object.entries(content).map(([type, { schema, example }]) => [
      type,
      { schema: withReferences(schema), ...(example && { examples: namedExample(example) }) },
    ]),
  );
}

function namedExample({ request, answer }: NonNullable<Content['example']>): Schema {
  return { bundled: { summary: `GET ${request}`, value: answer } };
}

function headers(names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function optional(names: NonNullable<Answer['sometimes']>): Schema {
  return Object.fromEntries(names.map((name) => [name, RESPONSE_HEADERS[name]]));
}

const NAMES = new Map<unknown, string>(Object.entries(COMPONENTS).map(([name, schema]) => [schema, name]));

/** A copy in which schemas that have a name stand by reference; `itself` is not replaced. */
function withReferences(value: unknown, itself?: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const name = value === itself ? undefined : NAMES.get(value);
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` };
  if (Array.isArray(value)) return value.map((entry) => withReferences(entry));
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, withReferences(entry)]));
}
