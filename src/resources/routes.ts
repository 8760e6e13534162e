import { changesRoute, orFollow } from './changes/routes.ts';
import type { Route } from '../http/route.ts';
import { pageRoute } from './page/route.ts';
import type { ProblemCode } from '../problems.ts';
import { partitionsRoute } from './stream/partitions.ts';
import { rowRoute } from './row/row.ts';
import { streamRoute } from './stream/stream.ts';
import type { RouteDocs } from './route-docs.ts';
import type { RouteOptions } from './row-source.ts';
import { documented, parameter, type Parameter } from '../input/parameter.ts';
import type { Alias } from './query/form.ts';
import { splitName } from './query/grammar.ts';
import { askableOfResource, type Askable } from './query/not-indexed.ts';
import type { OpenResource } from './open.ts';
import { resourceFor } from './query/part.ts';
import { isField } from './query/read-plan.ts';
import { sourceOf } from './source.ts';
import { valuesRoute } from './values/values.ts';

export type ResourceOptions = Omit<RouteOptions, 'sourceFor' | 'ordered' | 'stopping'>;

/** The problems of reading a plan. */
export const PLAN_PROBLEMS: readonly ProblemCode[] = ['not-indexed', 'ambiguous-value'];

/** The routes of one resource. The indexes and kinds known are for the parameters in /openapi.json. */
export function resourceRoutes(
  { resource, indexes, kinds, stopping = NEVER }: OpenResource,
  options: ResourceOptions,
) {
  const { name, form } = resource;
  const forms = askableOfResource(resource, indexes);
  const { closed } = form;
  const ofFields = closed ? NO_FIELDS : fieldParameters(forms, kinds);
  const docs: RouteDocs = {
    ...{ ...form.docs, path: `/${name}` },
    parameters: [...form.parameters, ...ofFields.all],
    ...(!closed && { isField, problems: PLAN_PROBLEMS }),
  };
  const sourceFor: RouteOptions['sourceFor'] = (client) => sourceOf(resourceFor(resource, client));
  const ordered = ['sort', ...ofFields.ranges, ...(closed ?? []).filter(isBound).map(nameOf)];
  const shared = { ...options, sourceFor, stopping, ordered };
  return {
    list: pageRoute(docs, true, shared),
    stream: orFollow(streamRoute(docs, shared), docs, shared),
    changes: changesRoute(docs, shared),
    partitions: partitionsRoute(docs, shared),
    values: withExample(valuesRoute(docs, resource, options.limits), 'field', listedField(forms)),
    get: rowRoute(docs, shared),
  } satisfies Record<string, Route>;
}

const NEVER = new AbortController().signal;
const NO_FIELDS: ReturnType<typeof fieldParameters> = { all: [], ranges: [] };

/** Whether a parameter needs the order of its field. */
function isBound({ to }: Alias): boolean {
  const { operator } = splitName(to);
  return operator !== undefined && operator !== 'eq';
}

function nameOf({ parameter }: Alias): string {
  return parameter.name;
}

/** A field whose values can be listed without a filter, for the request that the reference page fills in. */
function listedField(forms: readonly Askable[]): string | undefined {
  const alone = forms.find(({ filters, sort }) => filters.length === 0 && sort !== null && sort !== 'id');
  return alone?.sort ?? forms.find(({ filters }) => filters[0] !== 'id')?.filters[0];
}

/** A route whose parameter has an example. */
function withExample(route: Route, name: string, example: string | undefined): Route {
  if (example === undefined) return route;
  const query = (route.query ?? []).map((one) =>
    one.name === name && one.doc ? { ...one, doc: { ...one.doc, example } } : one,
  );
  return { ...route, query };
}

const RANGE = { gte: 'at least', gt: 'above', lte: 'at most', lt: 'below' } as const;

/** The parameters that ask for indexed fields, as /openapi.json describes them. The plan reads them itself. */
function fieldParameters(
  forms: readonly Askable[],
  kinds: readonly { readonly field: string; readonly kinds: readonly string[] }[] = [],
): {
  readonly all: readonly Parameter<unknown>[];
  readonly ranges: readonly string[];
} {
  const filters = new Set(forms.flatMap((form) => form.filters));
  const sorts = new Set(forms.flatMap(({ sort }) => (sort === null ? [] : [sort])));
  const kindOf = (path: string) => kinds.find(({ field }) => field === path)?.kinds ?? [];
  const equalities = [...filters].map((path) =>
    described(
      isField(path) && !OPERATOR.test(path) ? path : `${path}.eq`,
      `Return only rows with this value of ${path}.`,
      kindOf(path),
    ),
  );
  const ranges = [...sorts].flatMap((path) =>
    Object.entries(RANGE).map(([operator, words]) =>
      described(
        `${path}.${operator}`,
        `Return only rows whose value of ${path} is ${words} this one, in its order.`,
        kindOf(path),
      ),
    ),
  );
  return { all: [...equalities, ...ranges], ranges: ranges.map(({ name }) => name) };
}

/** A path whose last name reads as an operator is asked for with `.eq`. */
const OPERATOR = /.\.(eq|gte|gt|lte|lt)$/;

function described(name: string, description: string, kinds: readonly string[]): Parameter<string> {
  const schema = { type: 'string' };
  return documented(
    parameter(name, 'a value', schema, (text) => text),
    `${description}${kinds.length > 0 ? ` Its kind is ${kinds.join(' or ')}.` : ''} ${PREFIXES}`,
  );
}

const PREFIXES =
  'A prefix such as `str:`, `int:`, `oid:` or `date:` fixes the type of the value; `null:` also finds rows without it.';
