/** The values of a field with their counts, from an index. */
import { ask, urlOf } from './api.ts';
import { filtersBefore } from './allowed-queries.ts';
import type { Resource } from './resource.ts';
import { Digits, textOf, type Json } from './json.ts';
import { filterQuery, type View } from './view.ts';

/** Values that one request lists, and requests until they are counted. */
const [LISTED, MOST_ROUNDS] = [20, 3];

export interface FacetValue {
  readonly value: Json;
  /** The text that a query has for it. */
  readonly text: string;
  /** The number of rows. Null: unknown. */
  readonly count: number | null;
}

export interface Facet {
  readonly values: readonly FacetValue[];
  /** Continues the list. Null: these are all. */
  readonly next: string | null;
}

/** Lists values of a path under the filters of a view. Null when other filters must be given first. */
export async function listFacet(
  resource: Resource,
  view: View,
  path: string,
  cursor: string | null,
  signal: AbortSignal,
): Promise<Facet | null> {
  const within = filtersBefore(resource.queries, [...view.equals.keys()], path);
  if (within === null) return null;
  const equals = new Map([...view.equals].filter(([name]) => within.includes(name)));
  const query = filterQuery(resource, { equals });
  query.set('field', path);
  query.set('limit', String(LISTED));
  query.set('count', 'exact');
  if (cursor !== null) query.set('cursor', cursor);
  const body = await countedValues(urlOf(`${resource.links.page}/values`, query), signal);
  const texts = body.data.map(({ value }) => textOf(value));
  const values = body.data.map(({ value, count = null }) => {
    const isTwin = texts.filter((text) => text === textOf(value)).length > 1;
    return { value, count, text: spelled(value, isTwin) };
  });
  return { values, next: body.page.hasMore ? body.page.nextCursor : null };
}

/** The values with their counts. A busy server may need more than the second that it takes for one answer. */
async function countedValues(url: string, signal: AbortSignal): Promise<ValuesBody> {
  for (let rest = MOST_ROUNDS; ; rest--) {
    const { body } = await ask<ValuesBody>(url, { signal });
    if (rest === 1 || body.countsAre !== 'partial') return body;
  }
}

interface ValuesBody {
  readonly countsAre?: 'exact' | 'partial';
  readonly data: readonly { readonly value: Json; readonly count?: number | null }[];
  readonly page: { readonly hasMore: boolean; readonly nextCursor: string | null };
}

/** The text of a query for a value. `isTwin`: another value looks the same, so the type is written, too. */
export function spelled(value: Json, isTwin = false): string {
  if (value === null) return 'null:';
  if (typeof value === 'boolean') return `bool:${String(value)}`;
  if (typeof value === 'string') return isTwin || PREFIXED.test(value) ? `str:${value}` : value;
  if (!isTwin) return textOf(value);
  const text = value instanceof Digits ? value.text : textOf(value);
  return `${/^-?\d+$/.test(text) ? 'int' : 'num'}:${text}`;
}

const PREFIXED = /^(str|int|num|dec|oid|date|uuid|bool|null):/;
