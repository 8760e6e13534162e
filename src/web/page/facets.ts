/** The values of a field with their counts: from an index, or, for items, from a look at rows that is then counted. */
import { ask, urlOf } from './api.ts';
import { filtersBefore } from './asks.ts';
import { hasValues, type Resource } from './resource.ts';
import { Digits, textOf, valueAt, type Json, type Row } from './json.ts';
import { equalName, filterQuery, type View } from './view.ts';

/** Values that one request lists, and requests until they are counted. */
const [LISTED, MOST_ROUNDS] = [20, 3];
/** Rows that are looked at for the values of a field that the server does not list, in so many places of the set. */
const [LOOKED_AT, PLACES] = [200, 4];

export interface FacetValue {
  readonly value: Json;
  /** The text that a query has for it. */
  readonly text: string;
  /** The number of rows. Null: unknown. */
  readonly count: number | null;
}

export interface Facet {
  readonly values: readonly FacetValue[];
  /** Continues the list. Null: these are all, or nobody knows more. */
  readonly next: string | null;
  /** Filters that the counts include. */
  readonly within: readonly string[];
  /** Whether there may be values that no list has. */
  readonly isPartial: boolean;
}

/** Lists values of a path under the filters of a view. Null when other filters must be given first. */
export async function listFacet(
  resource: Resource,
  view: View,
  path: string,
  cursor: string | null,
  signal: AbortSignal,
): Promise<Facet | null> {
  if (!hasValues(resource)) return lookForValues(resource, path, signal);
  const within = filtersBefore(resource.queries, [...view.equals.keys()], path);
  if (within === null) return null;
  const equals = new Map([...view.equals].filter(([name]) => within.includes(name)));
  const query = filterQuery({ equals });
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
  return { values, next: body.page.hasMore ? body.page.nextCursor : null, within, isPartial: false };
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

/** Values that some rows have, each with its count. When the counts add up to all rows, there are no others. */
async function lookForValues(resource: Resource, path: string, signal: AbortSignal): Promise<Facet> {
  const all = resource.rows ?? 0;
  const limit = Math.ceil(LOOKED_AT / PLACES);
  const offsets = Array.from({ length: PLACES }, (_, n) => Math.floor(((all - limit) * n) / (PLACES - 1)));
  const rowsAt = async (offset: number) => {
    const query = new URLSearchParams({ limit: String(limit), fields: path });
    if (offset > 0) query.set('offset', String(Math.min(offset, 100_000)));
    const { body } = await ask<{ data: readonly Row[] }>(urlOf(resource.links.page, query), { signal });
    return body.data;
  };
  const rows = (await Promise.all([...new Set(offsets)].map(rowsAt))).flat();
  const texts = [...new Set(rows.map((row) => valueAt(row, path)))].filter(
    (value) => typeof value === 'string',
  );
  const values = await Promise.all(
    texts
      .sort()
      .slice(0, LISTED)
      .map(async (text): Promise<FacetValue> => {
        const query = new URLSearchParams({
          [equalName(path)]: text,
          limit: '1',
          fields: 'id',
          count: 'exact',
        });
        const { body } = await ask<{ page: { total?: number; totalIs?: string } }>(
          urlOf(resource.links.page, query),
          {
            signal,
          },
        );
        return { value: text, text, count: body.page.totalIs === 'exact' ? (body.page.total ?? null) : null };
      }),
  );
  const counted = values.reduce((sum, { count }) => sum + (count ?? 0), 0);
  return { values, next: null, within: [], isPartial: counted !== all };
}
