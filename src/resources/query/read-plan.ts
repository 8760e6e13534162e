import { conflict, invalid } from '../../input/parameter.ts';
import { quote, type Query } from '../../input/query.ts';
import { BSON_TYPE } from '../../store/values/bson-types.ts';
import type { Plan } from '../../store/store.ts';
import { KEY } from '../../store/bookmark.ts';
import type { Token } from '../token/token.ts';
import type { Form, Order } from './form.ts';
import { inName, orderAmong, readGiven, sortText, type Filters } from './grammar.ts';
import { choiceFor, notIndexed } from './not-indexed.ts';
import { withinScope, type FiltersInScope } from './scope.ts';
import { chooseIndex, isRefusal, type PlanRequest, type Choice, type Refusal } from './planner.ts';
import { areAlone, isSeveralNumbers, readRange, readValues, type ReadingOptions } from './readings.ts';
import { aliasesOf, indexesOf, type Resource } from './resource.ts';
import { adviceOnFields } from './unknown-fields.ts';

/** What a query asks of the fields of a resource. */
export function givenOf(query: Query, resource: Pick<Resource, 'form' | 'shown'>): Filters {
  const { closed } = resource.form;
  if (!closed) {
    const aliases = aliasesOf(resource);
    if (aliases.length === 0) return readGiven(query);
    const meant = new Map(aliases.map(({ parameter, to }) => [parameter.name, to]));
    return readGiven([...query].map(([name, text]) => [meant.get(name) ?? name, text]));
  }
  const pairs = closed.flatMap(({ parameter, to, prefix = '' }) => {
    const text = parameter.read(query);
    return text === undefined ? [] : [[to, prefix + text] as const];
  });
  return readGiven(pairs);
}

/** The paths that a query asks for. Undefined: all. AppError `invalid-parameter` for one known to be in no row. */
export function readFields(query: Query, { name, shown, form }: Resource): readonly string[] | undefined {
  const fields = form.fields.read(query);
  const unknown = fields?.find((path) => !shown.mayHave(path));
  if (unknown === undefined) return fields;
  const all = ['id', ...(shown.policy?.paths ?? [])].join(', ');
  throw invalid('fields', `fields: ${name} has no field ${quote(unknown)}; its fields are ${all}.`);
}

/** Of rows that can be asked for nothing: their collection may not exist yet, so its indexes are not looked at. */
const BY_ID: Plan = { sort: KEY, direction: 1 };

/**
 * Equalities and bounds come from the query alone. `token` says how their texts were read when the walk began, and the
 * order where the query names none; absent: it begins now. `isById`: without an order, only that of ids. AppErrors
 * `not-indexed`, `ambiguous-value`, `invalid-parameter`, `duplicate-parameter`, `conflicting-parameters`.
 */
export async function readPlan(
  query: Query,
  resource: Resource,
  signal: AbortSignal,
  token?: Pick<Token, 'types' | 'kind' | 'body'>,
  isById = false,
): Promise<Plan> {
  const { form } = resource;
  if (form.parameters.length === 0) return BY_ID;
  const types = token?.types ?? null;
  const given = givenOf(query, resource);
  const order = orderOf(form.sort.read(query), given);
  assertOrdered(given, order, form);
  const scoped = withinScope(given, order?.path, resource);
  const options = { resource, types, signal };
  const asked = scoped.isRefused ? scoped : await withRange(scoped, order, options);
  const isFree = order === undefined && !isById && asked.given.bounds.size === 0;
  const choice = await choose(asked, order, isFree ? sortOf(token) : undefined, resource, signal);
  const { index, direction } = choice;
  const values = await valuesOf(asked.given, choice, options);
  const { equals, among } = values;
  const [range] = asked.given.bounds;
  return {
    index,
    sort: choice.sort,
    direction,
    ...(equals.length > 0 && { equals }),
    ...(among && { among }),
    ...(range && { range: await readRange(...range, values, options) }),
    ...(asked.isEmpty && { isEmpty: true }),
  };
}

/** The values of a query, in the order of its index. Those behind it are of the one row that it names. */
function valuesOf(
  { equals: texts, among, bounds }: Filters,
  { index, equals }: Choice,
  options: ReadingOptions,
) {
  const named = pathsWithValues({ equals: texts, ...(among && { among }) });
  const first = equals.filter((path) => named.includes(path));
  const paths = [...first, ...named.filter((path) => !first.includes(path))];
  const given = paths.map((path) =>
    among?.path === path
      ? { ...among, isAmong: true }
      : { path, texts: [texts.get(path) ?? ''], isAmong: false },
  );
  return readValues(given, index, bounds.size > 0, options);
}

/** The paths that have a value, or one of several. */
function pathsWithValues({ equals, among }: Pick<Filters, 'equals' | 'among'>): readonly string[] {
  return among ? [...equals.keys(), among.path] : [...equals.keys()];
}

/** The order of the rows of each value. AppError `conflicting-parameters` for one that rows of several do not have. */
function orderOf(order: Order | undefined, { among }: Filters): Order | undefined {
  if (!among || !order) return order;
  const path = orderAmong(order.path, among);
  if (path !== null) return { ...order, path };
  const name = inName(among.path);
  const own = sortText({ sort: order.path, direction: order.direction });
  const other = order.path === among.path ? 'id_asc' : own;
  throw conflict(
    'sort',
    `The rows of ${name} come value by value, in the order of the values, so sort=${own} is not their order. Use sort=${name},${other}, or leave sort out.`,
  );
}

/**
 * An equality of several numbers shown alike (double, decimal) becomes their range, where order and index allow it and no
 * row has a number between them, which is shown otherwise.
 */
async function withRange(
  asked: FiltersInScope,
  order: Order | undefined,
  options: ReadingOptions,
): Promise<FiltersInScope> {
  const { resource, types, signal } = options;
  const { equals, bounds, among } = asked.given;
  if (among) return asked;
  const paths = order === undefined ? [...equals.keys()] : [order.path];
  for (const path of bounds.size > 0 ? [] : paths) {
    const text = equals.get(path);
    if (text === undefined || !isSeveralNumbers(text) || (types && types.at(-1) !== BSON_TYPE.int32))
      continue;
    const bound = { text, isInclusive: true };
    const others = new Map([...equals].filter(([other]) => other !== path));
    const range = new Map([[path, { low: bound, high: bound }]]);
    const ranged = { ...asked, given: { ...asked.given, equals: others, bounds: range } };
    const choice = chooseIndex(pathsOf(ranged, order), await indexesOf(resource, signal));
    if (isRefusal(choice)) continue;
    if (types) return ranged;
    const { places } = await valuesOf(ranged.given, choice, options);
    if (await areAlone({ path, places }, text, options)) return ranged;
  }
  return asked;
}

/** The index of a query. AppError `not-indexed`. */
async function choose(
  asked: FiltersInScope,
  order: Order | undefined,
  free: PlanRequest['free'],
  resource: Resource,
  signal: AbortSignal,
): Promise<Choice> {
  const indexes = await indexesOf(resource, signal);
  if (asked.isRefused) throw notIndexed(UNKNOWN, indexes, resource);
  const request = { ...pathsOf(asked, order), ...(free !== undefined && { free }) };
  const choice = choiceFor(request, indexes, resource);
  if (!isRefusal(choice)) return choice;
  const onFields = resource.scope ? '' : await adviceOnFields(choice, indexes, resource, signal);
  throw notIndexed(choice, indexes, resource, request, onFields);
}

/** The path that orders the walk of a cursor. True: the walk begins now. Undefined: it is ordered by ids. */
function sortOf(token: Pick<Token, 'kind' | 'body'> | undefined): PlanRequest['free'] {
  if (token === undefined) return true;
  const path = token.kind === 'row' ? token.body.toString('utf8', 5, token.body.indexOf(0, 5)) : KEY;
  return path === KEY ? undefined : path;
}

/** AppError `conflicting-parameters` for a range of a closed form in the order of another path. */
function assertOrdered({ bounds }: Filters, order: Order | undefined, { closed }: Form): void {
  const [path] = bounds.keys();
  if (!closed || !order || path === undefined || order.path === path) return;
  const names = closed.filter(({ to }) => to.startsWith(`${path}.`)).map(({ parameter }) => parameter.name);
  const got = sortText({ sort: order.path, direction: order.direction });
  throw conflict('sort', `${names.join(' and ')} require a ${path} sort; got sort=${got}.`);
}

function pathsOf({ given, where }: FiltersInScope, order: Order | undefined): PlanRequest {
  return {
    equals: [...where.map(({ path }) => path), ...pathsWithValues(given)],
    ranges: [...given.bounds.keys()],
    ...(order && { sort: order }),
  };
}

/** The refusal of a hidden path, which is that of any path without an index. */
const UNKNOWN: Refusal = { reason: 'No index answers this query.' };
