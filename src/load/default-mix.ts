import { answerTo, jsonOf } from './http/get.ts';
import type { Requests } from './http/requests.ts';
import type { PageQuery } from './queries.ts';
import type { ListedResource } from './target.ts';

/** Of the pages of a resource: first pages, pages of walks by cursor, and pages of filters. */
const WEIGHTS = { first: 4, walk: 3, filters: 3 };
const LIMIT = 50;
/** Filters of one resource, and values of each, that are asked for. */
const MOST_FILTERS = 3;
const MOST_VALUES = 10;
const SAMPLED_ROWS = 200;
const JSON_FORM = { accept: 'application/json', coding: 'identity' };

/**
 * What readers of pages ask for by default: of each resource with rows its first page, a walk by cursors, and filters by
 * values that it has.
 */
export async function defaultMix(
  requests: Requests,
  prefix: string,
  resources: readonly ListedResource[],
): Promise<PageQuery[]> {
  const get = (path: string) => answerTo(requests.origin, requests.get(path, JSON_FORM));
  const mix: PageQuery[] = [];
  for (const resource of resources) {
    const page = resource.links.page;
    if (page === undefined || resource.rows === 0) continue;
    const path = `${prefix}${page}?limit=${LIMIT}`;
    const first = await get(path);
    if (first.head.status !== 200 || dataOf(jsonOf(first)).length === 0) continue;
    mix.push({ path, walks: false, weight: WEIGHTS.first }, { path, walks: true, weight: WEIGHTS.walk });
    const filtered: string[] = [];
    for (const filter of await filtersOf(get, prefix, resource)) {
      const one = `${path}&${filter}`;
      if ((await get(one)).head.status === 200) filtered.push(one);
    }
    for (const one of filtered)
      mix.push({ path: one, walks: false, weight: WEIGHTS.filters / filtered.length });
  }
  return mix;
}

type Get = (path: string) => ReturnType<typeof answerTo>;

/** Filters by one value each, as text of a query. */
async function filtersOf(get: Get, prefix: string, resource: ListedResource): Promise<string[]> {
  const { queries, links } = resource;
  const single = queries.filter(({ filters }) => filters.length === 1);
  const paths = [...new Set(single.map(({ filters }) => filters[0] ?? ''))].slice(0, MOST_FILTERS);
  const all: string[] = [];
  for (const path of paths) {
    const sorts = single.filter(({ filters }) => filters[0] === path).map(({ sort }) => sort);
    const values = links.values
      ? await valuesOf(get, prefix + links.values, path)
      : await valuesOfRows(get, prefix + (links.page ?? ''), path);
    values.forEach((value, i) => {
      const sort = sorts[i % sorts.length] ?? 'id';
      const order = sort === 'id' ? '' : `&sort=${encodeURIComponent(sort)}_asc`;
      all.push(`${encodeURIComponent(path)}=${encodeURIComponent(value)}${order}`);
    });
  }
  return all;
}

async function valuesOf(get: Get, values: string, path: string): Promise<string[]> {
  const url = `${values.split('?')[0]}?field=${encodeURIComponent(path)}&limit=${MOST_VALUES}`;
  return texts(dataOf(jsonOf(await get(url))).map(({ value }) => value));
}

/** Of a resource that does not list its values. */
async function valuesOfRows(get: Get, page: string, path: string): Promise<string[]> {
  return texts(dataOf(jsonOf(await get(`${page}?limit=${SAMPLED_ROWS}`))).map((row) => row[path]));
}

function dataOf(page: unknown): Readonly<Record<string, unknown>>[] {
  const { data } = Object(page) as { data?: unknown };
  return Array.isArray(data) ? (data as Readonly<Record<string, unknown>>[]) : [];
}

/** Values that a URL can name. */
function texts(values: readonly unknown[]): string[] {
  const simple = values.filter((value) => ['string', 'number', 'boolean'].includes(typeof value));
  return [...new Set(simple.map(String))].slice(0, MOST_VALUES);
}
