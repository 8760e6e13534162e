import { KEY, makeBookmark, type Bookmark } from '../../store/bookmark.ts';
import { BSON, Double, EJSON } from '../../store/values/bson.ts';
import { documentWith, elementOf } from '../../store/values/bson-elements.ts';
import { BSON_TYPE } from '../../store/values/bson-types.ts';
import { areFound, type FieldPlace } from '../query/found-values.ts';
import { bracketOfType } from '../query/brackets.ts';
import { indexBeginningWith } from '../query/kind-table.ts';
import { ID_TYPES, plainReadings, readingsWith, type Reading } from '../query/kinds.ts';
import type { Resource } from '../query/resource.ts';

/** A longer id or category is no item's. Bytes of UTF-8. */
export const MAX_ID_BYTES = 256;

export type Ids = Pick<Resource, 'rows' | 'scope' | 'idType'>;

/** An id that a text can show. `null`: of a kind that other ids look like. */
export type IdReading = Pick<Reading, 'kind'> & { readonly id: Bookmark };

/**
 * The ids that a text in a URL can stand for, texts first: of the configured type if set, else of the kinds that the
 * collection has. A kind that comes later is seen within a second (found-values.ts). Rejects as reads do.
 */
export async function idsShownAs(
  text: string,
  resource: Ids,
  signal: AbortSignal,
): Promise<readonly IdReading[]> {
  const { idType, rows } = resource;
  if (idType) return readingsWith(ID_TYPES[idType], text).map(idOf);
  const readings = plainReadings(text).filter(({ isBetween, isNear }) => !isBetween && !isNear);
  const texts = readings.filter(({ kind }) => kind === 'string');
  const others = othersShownAs(text).map((id) => ({ kind: 'null', id }) as const);
  const ids = [...[...texts, ...readings.filter((one) => !texts.includes(one))].map(idOf), ...others];
  // NaN is in no range that can be looked at, so what shows as null is read.
  const place = ids.length > 1 && text !== 'null' ? await placeOfIds(resource, signal) : null;
  if (!place) return ids;
  const brackets = [...new Set(ids.map(bracketOf))].filter((bracket) => LOOKED_AT.has(bracket));
  const ranges = brackets.map((bracket) => ({ bracket }));
  const found = await areFound(rows, place, ranges, signal);
  return ids.filter((one) => found[brackets.indexOf(bracketOf(one))] ?? true);
}

/** Where ids can be looked at. Null: the key opens rows that no index has in order of id. */
export async function placeOfIds(
  { rows, scope }: Pick<Ids, 'rows' | 'scope'>,
  signal: AbortSignal,
): Promise<FieldPlace | null> {
  const { indexes } = await rows.describe(signal);
  const index = indexBeginningWith(KEY, indexes, scope);
  return index ? { index, equals: [] } : null;
}

function idOf({ kind, value }: Pick<Reading, 'kind' | 'value'>): IdReading {
  return { kind, id: makeBookmark({ _id: value }) };
}

function bracketOf({ id }: IdReading): number {
  return bracketOfType(id[TYPE_AT] ?? 0);
}

/** Where the type of a document's first element is. */
const TYPE_AT = 4;

/** The types for whose brackets a look at ids is possible in both stores. Values of others are hardly ever ids. */
const LOOKED_AT: ReadonlySet<number> = new Set([
  BSON_TYPE.int32,
  BSON_TYPE.string,
  BSON_TYPE.document,
  BSON_TYPE.binary,
  BSON_TYPE.objectId,
  BSON_TYPE.boolean,
  BSON_TYPE.date,
  BSON_TYPE.timestamp,
  BSON_TYPE.code,
  BSON_TYPE.scopedCode,
]);

/** Ids that are shown as a text, and that no text in a query stands for. */
function othersShownAs(text: string): readonly Bookmark[] {
  if (text === 'null')
    return [null, new Double(NaN), new Double(-Infinity), new Double(Infinity)].map((_id) =>
      makeBookmark({ _id }),
    );
  if (text.startsWith('{')) return extendedJsonOf(text);
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? SUBTYPES.map((subtype) => binaryOf(bytes, subtype)) : [];
}

/** The subtypes of binary values that are shown in base64. */
const SUBTYPES = [0, 1, 3, 5, 6, 7, 8, 9, 128];

/** As bytes: BSON writes no vector (subtype 9) that is not valid, and any text may be one. */
function binaryOf(bytes: Uint8Array, subtype: number): Bookmark {
  const value = Buffer.alloc(5 + bytes.length);
  value.writeInt32LE(bytes.length);
  value[4] = subtype;
  value.set(bytes, 5);
  return documentWith(elementOf(BSON_TYPE.binary, KEY, value)) as Bookmark;
}

function extendedJsonOf(text: string): readonly Bookmark[] {
  try {
    return [BSON.serialize({ _id: EJSON.parse(text) as unknown }) as Bookmark]; // throws for a member `_bsontype`
  } catch (error) {
    if (error instanceof Error) return []; // no JSON, or nothing that an id can be
    throw error;
  }
}
