import { changesRoute, orFollow } from './changes/change-routes.ts';
import type { Route } from '../http/route.ts';
import { pageRoute } from './page/handler.ts';
import type { ProblemCode } from '../base/problems.ts';
import { partitionsRoute } from './stream/partitions.ts';
import { rowRoute } from './row/row.ts';
import { streamRoute } from './stream/stream.ts';
import type { RouteDocs, RouteOptions } from './route-docs.ts';
import { documented, parameter, type Parameter } from '../input/parameter.ts';
import { named, Type } from '../base/schema.ts';
import type { Alias } from './query/form.ts';
import { aliasesOf } from './query/resource.ts';
import { isField, splitName } from './query/grammar.ts';
import type { Index } from '../store/indexes.ts';
import type { ResourceDescription } from './list.ts';
import { askableOfResource, listedField, type Askable } from './query/not-indexed.ts';
import type { OpenResource } from './open.ts';
import type { RowDescription } from './schema/describe-row.ts';
import { valuesRoute } from './values/values.ts';

/** The problems of reading a plan. */
export const PLAN_PROBLEMS: readonly ProblemCode[] = ['not-indexed', 'ambiguous-value'];

/** The indexes of a resource, the kinds of fields that can be asked, and what its rows look like. */
export interface KnownFields {
  readonly indexes: readonly Index[];
  readonly kinds: ResourceDescription['kinds'];
  /** Absent: nothing is known of them. */
  readonly row?: RowDescription | undefined;
}

export const NOT_KNOWN: KnownFields = { indexes: [], kinds: [] };

/** The routes of one resource. What is known of it is for the parameters in /openapi.json. */
export function resourceRoutes(
  { resource, stopping = NEVER }: OpenResource,
  options: RouteOptions,
  { indexes, kinds, row } = NOT_KNOWN,
) {
  const { name, form } = resource;
  const { docs: own } = form;
  const forms = askableOfResource(resource, indexes);
  const { closed } = form;
  const aliases = aliasesOf(resource);
  const ofAliases = aliases.map((alias) => alias.parameter);
  const parameters = [
    ...form.parameters,
    ...(closed ? [] : [...ofAliases, ...fieldParameters(forms, kinds)]),
  ];
  const docs: RouteDocs = {
    ...own,
    row: row ? { ...own.row, schema: named(own.row.name, Type.Unsafe(row.schema)) } : own.row,
    path: `/${name}`,
    parameters,
    unordered: parameters.filter((one) => !needsOrder(one.name, closed ?? aliases)),
    ...(!closed && { isField, problems: PLAN_PROBLEMS }),
  };
  const feeds = { ...options, stopping };
  return {
    list: pageRoute(docs, resource, true, options),
    stream: orFollow(streamRoute(docs, resource, options), docs, resource, feeds),
    changes: changesRoute(docs, resource, feeds),
    partitions: partitionsRoute(docs, resource),
    values: valuesRoute(docs, resource, options.limits, listedField(forms)),
    get: rowRoute(docs, resource, options),
  } satisfies Record<string, Route>;
}

const NEVER = new AbortController().signal;

/** Whether a parameter needs another order than that of ids. */
function needsOrder(name: string, aliases: readonly Alias[]): boolean {
  const alias = aliases.find(({ parameter }) => parameter.name === name);
  const { operator = 'eq' } = splitName(alias?.to ?? name);
  return name === 'sort' || !['eq', 'in'].includes(operator);
}

const RANGE = { gte: 'at least', gt: 'above', lte: 'at most', lt: 'below' } as const;

/** The parameters that ask for indexed fields, as /openapi.json describes them. The plan reads them itself. */
function fieldParameters(
  forms: readonly Askable[],
  kinds: KnownFields['kinds'],
): readonly Parameter<unknown>[] {
  const described = (path: string, name: string, description: string) => {
    const own = kinds.find(({ field }) => field === path)?.kinds ?? [];
    const kind = own.length > 0 ? ` Its kind is ${own.join(' or ')}.` : '';
    const field = parameter(name, 'a value', { type: 'string' }, (text) => text);
    return documented(field, `${description}${kind} ${PREFIXES}`);
  };
  const filters = [...new Set(forms.flatMap((form) => form.filters))];
  const sorts = [...new Set(forms.flatMap(({ sort }) => sort ?? []))];
  return [
    ...filters.flatMap((path) => {
      const isName = isField(path) && splitName(path).operator === undefined;
      return [
        described(path, isName ? path : `${path}.eq`, `Return only rows with this value of ${path}.`),
        described(path, `${path}.in`, `Return only rows with one of these values of ${path}. ${IN}`),
      ];
    }),
    ...sorts.flatMap((path) =>
      Object.entries(RANGE).map(([operator, words]) =>
        described(
          path,
          `${path}.${operator}`,
          `Return only rows whose value of ${path} is ${words} this one, in its order.`,
        ),
      ),
    ),
  ];
}

const IN =
  'At most 100, separated by commas, or a JSON array of texts. The rows come value by value, in the order of the values. Only one field can have several.';
const PREFIXES =
  'A prefix such as `str:`, `int:`, `oid:` or `date:` fixes the type of the value; `null:` also finds rows without it.';
