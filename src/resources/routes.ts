import { changesFrom } from '../changes/from.ts';
import { changesRoute, orFollow } from '../changes/routes.ts';
import type { Route } from '../http/route.ts';
import type { PageLimits } from '../pages/query.ts';
import { pageRoute } from '../pages/route.ts';
import type { ProblemCode } from '../problems.ts';
import type { Transcoder } from '../rows/rows.ts';
import { named, Type } from '../schema.ts';
import { idReader } from '../streams/id.ts';
import { partitionsRoute } from '../streams/partitions.ts';
import { rowRoute } from '../streams/row.ts';
import { streamRoute } from '../streams/stream.ts';
import { fieldsOf, type RowsTold } from '../streams/row-route.ts';
import { RESOURCE_AFTER } from './after.ts';
import { fieldParameters } from './field-parameters.ts';
import { askableOfResource, type Askable } from './not-indexed.ts';
import type { OpenResource } from './open.ts';
import { isField, resourcePlan } from './query.ts';
import { RESOURCE_COLUMNS } from './resource.ts';
import { valuesRoute } from './values.ts';

export interface ResourceOptions {
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  readonly cacheControl: string;
  /** See StreamOptions. */
  readonly parked?: () => () => void;
  /** See FeedOptions. */
  readonly stopping?: AbortSignal;
  readonly heartbeatMs?: number;
}

/** A row of any collection: its key first, then all its fields unchanged. */
const ROW = named(
  'Row',
  Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        'a row with all its fields or the requested ones; the first member, `id` or `_id`, is its key',
    },
  ),
);

/** The problems of reading a plan. */
export const PLAN_PROBLEMS: readonly ProblemCode[] = ['not-indexed', 'ambiguous-value'];

/** The routes of one resource. The indexes and kinds known are for the parameters in /openapi.json. */
export function resourceRoutes(
  { resource, indexes, kinds }: OpenResource,
  options: ResourceOptions,
): readonly Route[] {
  const { name, rows, streams } = resource;
  const told: RowsTold = {
    path: `/${name}`,
    tag: 'Resources',
    noun: { one: `row of ${name}`, many: `rows of ${name}` },
    schema: ROW,
    isField,
    problems: PLAN_PROBLEMS,
  };
  const forms = askableOfResource(resource, indexes);
  const ofFields = fieldParameters(forms, kinds);
  const plan = resourcePlan(resource, ofFields.all);
  const shared = {
    ...options,
    rows,
    streams,
    plan,
    shown: resource.shown,
    readId: idReader(rows, undefined),
    changesFrom: changesFrom(rows, name),
  };
  const ordered = ['sort', ...ofFields.ranges];
  const id = (verb: string) => `${verb}_${slugOf(name)}`;
  const list = pageRoute(
    {
      ...fieldsOf(told),
      path: told.path,
      id: id('list'),
      tag: told.tag,
      summary: `List rows of ${name}`,
      description:
        'Returns a page of rows. Each parameter that is not listed is a filter: the path of a field, with `.gte`, `.gt`, `.lte` or `.lt` behind it for a range. Only combinations that an index answers are allowed.',
      row: { name: 'Row', plural: 'rows', schema: ROW },
      problems: PLAN_PROBLEMS,
    },
    { ...shared, count: (...call) => rows.count(...call) },
  );
  const stream = streamRoute(
    { ...told, id: id('stream') },
    { ...shared, columns: RESOURCE_COLUMNS, after: RESOURCE_AFTER },
  );
  return [
    list,
    orFollow(stream, told, shared),
    changesRoute({ ...told, id: id('changes') }, { ...shared, ordered }),
    partitionsRoute({ ...told, id: id('partition') }, { ...shared, columns: RESOURCE_COLUMNS, ordered }),
    withExample(
      valuesRoute({ ...told, id: id('values') }, resource, options.limits),
      'field',
      listedField(forms),
    ),
    rowRoute({ ...told, id: id('get') }, shared),
  ].map((route) => ({ ...route, resource: name }));
}

/** A field whose values can be listed without a filter, for the request that the reference page fills in. */
function listedField(forms: readonly Askable[]): string | undefined {
  const alone = forms.find(({ filters, sort }) => filters.length === 0 && sort !== null && sort !== 'id');
  return alone?.sort ?? forms.find(({ filters }) => filters[0] !== 'id')?.filters[0];
}

/** A route whose parameter has an example. */
function withExample(route: Route, parameter: string, example: string | undefined): Route {
  if (example === undefined) return route;
  const query = (route.query ?? []).map((one) =>
    one.name === parameter && one.doc ? { ...one, doc: { ...one.doc, example } } : one,
  );
  return { ...route, query };
}

/** A name as generated clients can have it in the name of a function, different for every resource. */
function slugOf(name: string): string {
  return name.replace(/[^A-Za-z0-9]/g, (one) => `_${one.charCodeAt(0).toString(16)}_`);
}
