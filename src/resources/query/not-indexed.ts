import { AppError, storeUnfit } from '../../base/errors.ts';
import { KEY } from '../../store/bookmark.ts';
import type { Index } from '../../store/indexes.ts';
import type { Equality } from '../../store/store.ts';
import { shellWord } from '../../terminal/text.ts';
import type { Alias } from './form.ts';
import { shownPath, splitName } from './grammar.ts';
import { chooseIndex, isRefusal, type PlanRequest, type Choice, type Refusal } from './planner.ts';
import type { Resource } from './resource.ts';

/** A form of query that an index answers. Each filter needs a value, and a range is on the sort only. */
export interface Askable {
  readonly filters: readonly string[];
  /** The path of the sort. null: the filters name one row at most. */
  readonly sort: string | null;
  readonly index: string;
}

/** The most forms that a problem lists. `GET /resources` has all. */
const MOST_LISTED = 12;

/** What can be asked of these indexes, see chooseIndex. */
export function askableOf(indexes: readonly Index[]): readonly Askable[] {
  return indexes
    .filter(({ refused }) => refused === undefined)
    .flatMap(({ name, keys, isUnique }): Askable[] => {
      const paths = keys.map(({ path }) => shownPath(path));
      const keyAt = keys.findIndex(({ path }) => path === KEY);
      const before = keys[keyAt - 1];
      const key = keys[keyAt];
      const forms: Askable[] = [];
      if (isUnique) forms.push({ filters: paths, sort: null, index: name });
      if (isUnique && keyAt < 0)
        forms.push({ filters: paths.slice(0, -1), sort: paths.at(-1) ?? null, index: name });
      if (before && before.sign === key?.sign)
        forms.push({ filters: paths.slice(0, keyAt - 1), sort: shownPath(before.path), index: name });
      if (keyAt >= 0) forms.push({ filters: paths.slice(0, keyAt), sort: 'id', index: name });
      return forms;
    });
}

/** A field whose values can be listed without a filter. */
export function listedField(forms: readonly Askable[]): string | undefined {
  const alone = forms.find(({ filters, sort }) => filters.length === 0 && sort !== null && sort !== 'id');
  return alone?.sort ?? forms.find(({ filters }) => filters[0] !== 'id')?.filters[0];
}

/** Indexes that would order rows if they ended in `_id`, with the fields of the index to add. */
export function withoutSuffix(
  indexes: readonly Index[],
): readonly { readonly index: string; readonly fields: readonly string[] }[] {
  const usable = indexes.filter(({ refused }) => refused === undefined);
  const begins = (one: Index, fields: readonly string[]) =>
    fields.every((path, n) => one.keys[n]?.path === path);
  return usable
    .filter(({ keys, isUnique }) => !isUnique && !keys.some(({ path }) => path === KEY))
    .map(({ name, keys }) => ({ index: name, fields: [...keys.map(({ path }) => path), KEY] }))
    .filter(({ fields }) => !usable.some((one) => begins(one, fields)));
}

/** The command that makes an index of the resource: for `sluice` where the store keeps resources, else for mongosh. */
export function indexLine(
  isKept: boolean,
  name: string,
  database: string | undefined,
  collection: string,
): Resource['indexLine'] {
  if (isKept)
    return (fields) => `sluice index ${name} ${shellWord(fields.filter((path) => path !== '_id').join(','))}`;
  const place = database === undefined ? 'db' : `db.getSiblingDB(${JSON.stringify(database)})`;
  return (fields) => {
    const keys = fields.map((path) => `${JSON.stringify(path)}:1`).join(',');
    return `${place}.getCollection(${JSON.stringify(collection)}).createIndex({${keys}})`;
  };
}

/**
 * The refusal of a query. To a key with a part it says what can be asked of that: more could give rows away. `onFields`: what
 * is said of fields that rows do not have (see adviceOnFields), in place of the line for an index of them.
 */
export function notIndexed(
  { reason, remedy }: Refusal,
  indexes: readonly Index[],
  resource: Pick<Resource, 'indexLine' | 'isTerse' | 'scope' | 'form'>,
  asked?: PlanRequest,
  onFields = '',
): AppError {
  const { indexLine, isTerse, scope } = resource;
  const forms = askableOfResource(resource, indexes);
  const listed = `Indexes answer: ${textsOf(forms).slice(0, MOST_LISTED).join('; ')}.`;
  const served = chooseIndex({ equals: (scope?.where ?? []).map(({ path }) => path), ranges: [] }, indexes);
  if (isRefusal(served)) {
    const line = served.remedy ? `this index would: ${indexLine(served.remedy)}` : served.reason;
    return storeUnfit('No index serves the rows that this key opens.', new Error(line));
  }
  if (scope) return new AppError('not-indexed', `No index answers this query. ${listed}`);
  const would =
    remedy && !isTerse && onFields === ''
      ? ` This index would allow it, if no row has an array there: ${indexLine(remedy)}`
      : '';
  const near = asked ? nearest(asked, forms) : '';
  const fields = onFields === '' ? '' : `${onFields} `;
  return new AppError('not-indexed', `${reason} ${fields}${near}${listed}${would}`);
}

/**
 * The nearest query that is answered. Rows under filters come first, in another order; without filters the order does, and
 * more filters allow it. A query without `sort` may have no order to choose: one of parts.
 */
function nearest({ equals, sort, ranges }: PlanRequest, forms: readonly Askable[]): string {
  const filters = equals.map(shownPath);
  const wanted = shownPath(sort?.path ?? ranges[0] ?? KEY);
  const behind = forms.filter((form) => filters.every((path) => form.filters.includes(path)));
  const same = behind
    .filter((form) => form.sort !== null && form.filters.length === filters.length)
    .map((form) => `sort=${form.sort}_asc`);
  const more = behind.find((form) => form.sort === wanted && form.filters.length > filters.length);
  const order =
    sort && ranges.length === 0 && same.length > 0 ? `Use ${[...new Set(same)].join(' or ')}. ` : '';
  const filter = more
    ? `Filter by ${more.filters.filter((path) => !filters.includes(path)).join(' and ')} first. `
    : '';
  return filters.length > 0 ? order || filter : filter || order;
}

/** The index of a query, or a declared one that the store then refuses as missing or unfit. Else why there is none. */
export function choiceFor(
  asked: PlanRequest,
  indexes: readonly Index[],
  { declared }: Pick<Resource, 'declared'>,
): Choice | Refusal {
  const choice = chooseIndex(asked, indexes);
  if (!isRefusal(choice)) return choice;
  const other = chooseIndex(asked, declared);
  return isRefusal(other) ? choice : other;
}

/** As choiceFor. AppError `not-indexed`. */
export function chosen(asked: PlanRequest, indexes: readonly Index[], resource: Resource): Choice {
  const choice = choiceFor(asked, indexes, resource);
  if (isRefusal(choice)) throw notIndexed(choice, indexes, resource, asked);
  return choice;
}

/** What can be asked of these indexes, each form once. `_desc` can be asked alike: `status with sort=createdAt_asc`. */
export function formsOf(indexes: readonly Index[]): readonly string[] {
  return textsOf(askableOf(indexes));
}

function textsOf(forms: readonly Askable[]): readonly string[] {
  return [...new Set(forms.map(textOf))];
}

/** The forms of queries of a part, without its own values. They name no index, whose name may give hidden fields away. */
function formsInScope(forms: readonly Askable[], where: readonly Equality[]): readonly Askable[] {
  const own = where.map(({ path }) => path);
  return forms
    .filter(({ filters }) => own.every((path) => filters.includes(path)))
    .map(({ filters, sort }) => {
      const left = filters.filter((path) => !own.includes(path));
      return { filters: left, sort, index: [...left, ...(sort === null ? [] : [sort])].join(', ') };
    });
}

/** What can be asked of a resource with these indexes, by the parameters that it has. */
export function askableOfResource(
  { scope, form: { closed } }: Pick<Resource, 'scope' | 'form'>,
  indexes: readonly Index[],
): readonly Askable[] {
  const forms = askableOf(indexes);
  const own = scope ? formsInScope(forms, scope.where) : forms;
  if (!closed) return own;
  const filters = pathsOf(closed, false);
  const sorts = ['id', ...pathsOf(closed, true)];
  return own.filter(
    (form) =>
      form.sort !== null && sorts.includes(form.sort) && form.filters.every((path) => filters.includes(path)),
  );
}

/** The paths that a closed form can ask for: by a range, or by a value. */
function pathsOf(closed: readonly Alias[], isRange: boolean): readonly string[] {
  return closed
    .map(({ to }) => splitName(to))
    .filter(({ operator }) => (operator !== undefined) === isRange)
    .map(({ path }) => path);
}

function textOf({ filters, sort }: Askable): string {
  const wanted = filters.join(', ');
  if (sort === null) return `${wanted} (one row)`;
  return wanted === '' ? `sort=${sort}_asc` : `${wanted} with sort=${sort}_asc`;
}
