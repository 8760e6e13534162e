import type { Client } from '../access/admission.ts';
import { AppError } from '../base/errors.ts';
import { mayKnow } from '../http/permit.ts';
import { prefers } from '../http/prefer.ts';
import type { Input } from '../http/route.ts';
import type { JsonBody } from '../input/body-json.ts';
import { pointer } from '../input/json-scan.ts';
import { LONGEST_URL, quote, type Query } from '../input/query.ts';
import { bodyCheck, invalidBody } from '../input/validate.ts';
import { getOrMake } from '../base/get-or-make.ts';
import { Type, type TSchema } from '../base/schema.ts';
import type { Compression } from '../pipeline/pieces.ts';
import type { MakeForm } from '../resources/stream/formats/format.ts';
import { formatOf, FORMATS, readForm } from '../resources/stream/formats/list.ts';
import type { Form } from '../resources/query/form.ts';
import { isField, sortText } from '../resources/query/grammar.ts';
import { scopedResource, resourceFor } from '../resources/query/scope.ts';
import type { Resource } from '../resources/query/resource.ts';
import { readPlan } from '../resources/query/read-plan.ts';
import { readStreamQuery } from '../resources/stream/parameters.ts';
import { closedBody, OPEN_BODY, type Member } from './export.ts';
import type { ExportRequest } from './job.ts';

/** What can be exported, by the names of the resources. */
export type ExportSources = ReadonlyMap<string, Resource>;

export function exportSources(resources: readonly { readonly resource: Resource }[]): ExportSources {
  return new Map(resources.map(({ resource }) => [resource.name, resource]));
}

export function sourcesFor(client: Pick<Client, 'key'>, sources: ExportSources): ExportSources {
  if (client.key === null) return sources;
  const known = [...sources].filter(([name]) => mayKnow(client, name));
  return new Map(known.map(([name, resource]) => [name, resourceFor(resource, client)]));
}

/** The resource of a request, or the part of it. Throws AppError `not-found` when this server no longer has the resource. */
export function resourceOf(
  { resource: name, scope }: Pick<ExportRequest, 'resource' | 'scope'>,
  sources: ExportSources,
): Resource {
  const resource = sources.get(name);
  if (resource) return scope ? scopedResource(resource, scope) : resource;
  throw new AppError(
    'not-found',
    `The resource ${name} is no longer declared. Declare it again, or order another export.`,
  );
}

/** What a resource, or a part of it, shows of a row: the same text for the same `hide` and `show`. */
export function shownAs({ shown }: Pick<Resource, 'shown'>): string {
  return JSON.stringify(shown.policy ?? null);
}

/** The body of an order and its check, by the form of the resource that it is for. */
interface Body {
  readonly schema: typeof OPEN_BODY | ReturnType<typeof closedBody>;
  readonly check: (json: JsonBody) => Readonly<Record<string, Member>> & Partial<FileKind>;
}
type FileKind = Pick<ExportRequest, 'format' | 'compression'>;

const OPEN: Body = { schema: OPEN_BODY, check: bodyCheck(OPEN_BODY) };
const closed = new WeakMap<Form, Body>();

function bodyFor({ form }: Resource): Body {
  if (!form.closed) return OPEN;
  return getOrMake(closed, form, () => {
    const schema = closedBody(form);
    return { schema, check: bodyCheck(schema) };
  });
}

/** The body of an order, for /openapi.json. */
export function orderSchema(sources: ExportSources): TSchema {
  const schemas = [...new Set([...sources.values()].map((one) => bodyFor(one).schema))];
  const [only = OPEN_BODY, ...others] = schemas;
  if (others.length === 0) return only;
  return Type.Union(schemas, {
    description: 'an object that says which rows of which resource to export, and how',
  });
}

/** The resource that a body names, or the only one. Throws AppError `invalid-body` otherwise. */
function namedIn({ value }: JsonBody, sources: ExportSources): Resource {
  const { resource: given } = (value ?? {}) as { readonly resource?: unknown };
  const [only, ...others] = sources.values();
  const meant = typeof given === 'string' ? sources.get(given) : undefined;
  const found = given === undefined && others.length === 0 ? only : meant;
  if (found) return found;
  const got = typeof given === 'string' ? quote(given) : given === undefined ? 'none' : 'no string';
  const names = [...sources.keys()].sort().join(', ') || 'the resources, of which none is served';
  throw invalidBody([{ pointer: '/resource', detail: `expected one of ${names}; got ${got}` }]);
}

/** Reads an order: its members are a stream's parameters. AppError `invalid-body`, and those of reading a plan. */
export async function requestOf(
  json: JsonBody,
  sources: ExportSources,
  signal: AbortSignal,
): Promise<ExportRequest> {
  const found = namedIn(json, sources);
  const body = bodyFor(found).check(json);
  const { format = FORMATS[0].name, compression = 'none', ...others } = body;
  const wanted = Object.entries(others).filter(([name]) => name !== 'resource');
  assertMembers(Object.keys(body), found);
  assertWritable(format, compression);
  const texts = new Map(wanted.map(([name, value]) => [name, textOf(name, value, json)]));
  assertLength(texts);
  try {
    return await ordered(texts, found, { format, compression }, signal);
  } catch (error) {
    throw atItsPlace(error, Object.keys(body));
  }
}

/**
 * Reads the export that a stream's request orders by `Prefer: respond-async` (RFC 7240, 4.1). null, for an answer with a
 * stream, without that or with a parameter that only a stream can fulfil.
 */
export function asynchronousRequest(
  { request, query, type }: Input,
  resource: Resource,
): (() => Promise<ExportRequest>) | null {
  if (request.method !== 'GET' || !prefers(request, 'respond-async')) return null;
  if (![...query.keys()].every((name) => isMember(name, resource))) return null;
  const format = formatOf(type).name;
  return () => ordered(query, resource, { format, compression: 'none' }, request.signal);
}

/** Reads the query once, as its stream would, so that an order that cannot be fulfilled is refused. */
async function ordered(
  given: Query,
  resource: Resource,
  form: Pick<ExportRequest, 'format' | 'compression'>,
  signal: AbortSignal,
): Promise<ExportRequest> {
  const query = new Map(given);
  query.delete('format');
  readFileForm(query, form.format, resource);
  const plan = await readPlan(query, resource, signal);
  if (!query.has('sort')) query.set('sort', sortText(plan));
  return {
    resource: resource.name,
    query: new URLSearchParams([...query]).toString(),
    ...form,
    ...(resource.scope && { scope: resource.scope.given }),
  };
}

/** What a query says of the form of a file. Throws the AppErrors of the stream. */
export function readFileForm(query: Query, name: string, resource: Resource): MakeForm {
  const format = formatOf(name);
  const [type] = format.types;
  return readForm(query, format, { type, resource, ...readStreamQuery(query, resource) });
}

/** The query of an order as stored. */
export function queryOf({ query }: ExportRequest): Query {
  return new Map(new URLSearchParams(query));
}

/** Whether an order has a member for this parameter of a stream. Some concern only a stream, not a file. */
function isMember(name: string, resource: Resource): boolean {
  const { properties } = bodyFor(resource).schema;
  return Object.hasOwn(properties, name) || (!resource.form.closed && isField(name));
}

/** A name of a stream's own parameter cannot ask for a field: see resources/query/grammar.ts. */
function assertMembers(names: readonly string[], resource: Resource): void {
  const others = names.filter((name) => !isMember(name, resource));
  if (others.length === 0) return;
  const known = Object.keys(OPEN_BODY.properties);
  const expected = `unknown field; expected ${known.join(', ')} or fields of the rows, of which one of this name is `;
  throw invalidBody(others.map((name) => ({ pointer: pointer([name]), detail: `${expected}${name}.eq` })));
}

/**
 * Throws AppError `invalid-body` for an order that is longer than the URL of its stream could be: the numbers of a body may
 * have a million digits, whose arithmetic would hold the event loop, and the record of an export keeps the order.
 */
function assertLength(texts: ReadonlyMap<string, string>): void {
  const { length } = new URLSearchParams([...texts]).toString();
  if (length <= LONGEST_URL) return;
  const [longest] = [...texts].toSorted(([, a], [, b]) => b.length - a.length);
  const detail = `expected at most ${LONGEST_URL} bytes in the query of the order, as in a URL; got ${length}`;
  throw invalidBody([{ pointer: pointer([longest?.[0] ?? '']), detail }]);
}

/** Throws AppError `invalid-body` for a form that this server cannot write. */
function assertWritable(format: string, compression: Compression): void {
  const { compressions, isCompressed, whyNot } = formatOf(format);
  const why = whyNot?.() ?? null;
  if (why !== null) throw invalidBody([{ pointer: '/format', detail: why }]);
  if (compressions.includes(compression)) return;
  const inside = isCompressed ? ', which is compressed inside' : '';
  const detail = `expected ${compressions.join(' or ')} with format ${format}${inside}; got ${compression}`;
  throw invalidBody([{ pointer: '/compression', detail }]);
}

/** The text of a member in a query. The digits of a number are those of the body. */
function textOf(name: string, value: Member, { numbers }: JsonBody): string {
  if (value === null) return 'null:';
  if (typeof value === 'object') return name.endsWith('.in') ? JSON.stringify(value) : value.join(',');
  return (typeof value === 'number' ? numbers.get(pointer([name])) : undefined) ?? String(value);
}

/** Turns a problem of a parameter into a fault of the body's member. Other errors stay as they are. */
function atItsPlace(error: unknown, names: readonly string[]): unknown {
  if (!(error instanceof AppError) || error.code === 'ambiguous-value') return error;
  const { parameter } = error;
  if (parameter === undefined) return error;
  const name = names.find((one) => one === parameter) ?? names.find((one) => one.startsWith(`${parameter}.`));
  return invalidBody([
    { pointer: name === undefined ? '' : pointer([name]), detail: error.message.replace(/\.$/, '') },
  ]);
}
