import { KEY, makeBookmark, type Bookmark } from '../../store/bookmark.ts';
import { Binary, BSON, Double, EJSON } from '../../store/bson.ts';
import { kindsAt } from '../query/kind-table.ts';
import { ID_TYPES, plainReadings, readingsWith, type Reading } from '../query/kinds.ts';
import type { Resource } from '../query/resource.ts';

/** A longer id or category is no item's. Bytes of UTF-8. */
export const MAX_ID_BYTES = 256;

export type Ids = Pick<Resource, 'rows' | 'scope' | 'idType'>;

/** An id that a text can show. `null`: of a kind that other ids look like. */
export type IdReading = Pick<Reading, 'kind'> & { readonly id: Bookmark };

/** The ids that a text in a URL can stand for, of the configured type if set. Kinds that ids have come first. */
export async function idsShownAs(
  text: string,
  resource: Ids,
  signal: AbortSignal,
): Promise<readonly IdReading[]> {
  const { idType } = resource;
  const readings = idType ? readingsWith(ID_TYPES[idType], text) : plainReadings(text);
  const exact = readings.filter(({ isBetween }) => !isBetween);
  const others = idType ? [] : othersShownAs(text).map((value) => ({ kind: 'null', value }) as const);
  const ids = [...exact, ...others].map(({ kind, value }) => ({ kind, id: makeBookmark({ _id: value }) }));
  if (ids.length <= 1) return ids;
  const { kinds } = await kindsAt(resource, KEY, signal);
  const isLikely = ({ kind }: IdReading) => kind !== 'null' && kinds.has(kind);
  return [...ids.filter(isLikely), ...ids.filter((one) => !isLikely(one))];
}

/** Ids that are shown as a text, and that no text in a query stands for. */
function othersShownAs(text: string): readonly unknown[] {
  if (text === 'null') return [null, new Double(NaN), new Double(-Infinity), new Double(Infinity)];
  if (text.startsWith('{')) return extendedJsonOf(text);
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? SUBTYPES.map((subtype) => new Binary(bytes, subtype)) : [];
}

/** The subtypes of binary values that are shown in base64. */
const SUBTYPES = [0, 1, 3, 5, 6, 7, 8, 9, 128];

function extendedJsonOf(text: string): readonly unknown[] {
  try {
    const value: unknown = EJSON.parse(text);
    BSON.serialize({ value }); // throws for a member `_bsontype`
    return [value];
  } catch (error) {
    if (error instanceof Error) return []; // no JSON, or nothing that an id can be
    throw error;
  }
}
