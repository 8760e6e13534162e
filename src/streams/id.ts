import { AppError } from '../errors.ts';
import { Binary, Double, Int32, Long, ObjectId, UUID } from '../store/bson.ts';
import { keyOf, makeBookmark, type Bookmark } from '../store/bookmark.ts';
import type { Identity, RowStore, Plan } from '../store/store.ts';

/** A longer text is the id of no row. Bytes of UTF-8. */
export const MAX_ID_BYTES = 256;

export const ID_TYPES = ['objectid', 'integer', 'uuid', 'string'] as const;
export type IdType = (typeof ID_TYPES)[number];

/**
 * The type of a collection's ids. `null` while the collection is empty, `other` when no text in a URL stands for such
 * an id.
 */
export type DetectedIdType = IdType | 'other' | null;

/**
 * Returns a function that resolves to the type of a collection's ids. A configured type (`set`) is taken as it is.
 * Otherwise the first row tells the type. It is read once for each collection that has the name. In a collection with
 * several types this is the lowest type (numbers, then text, UUIDs, ObjectIds). If no text in a URL stands for the
 * first row's id (for example null), the last row tells.
 */
export function idTypeLookup(
  rows: RowStore,
  set: IdType | undefined,
): (signal: AbortSignal) => Promise<DetectedIdType> {
  if (set !== undefined) return () => Promise.resolve(set);
  let known: { readonly type: IdType | 'other'; readonly identity: Identity | undefined } | null = null;
  const look = async (signal: AbortSignal): Promise<DetectedIdType> => {
    const identity = await rows.identity(signal);
    if (known?.identity === identity && known) return known.type;
    const type = await detectIdType(rows, identity, signal);
    known = type && { type, identity };
    return type;
  };
  return (signal) =>
    look(signal).catch((error: unknown) => {
      // The collection was replaced since the last request. The store knows the new one by now.
      if (error instanceof AppError && error.code === 'collection-replaced') return look(signal);
      throw error;
    });
}

async function detectIdType(
  rows: RowStore,
  identity: Identity | undefined,
  signal: AbortSignal,
): Promise<DetectedIdType> {
  const first = await endIdType(rows, identity, 1, signal);
  return first === 'other' ? endIdType(rows, identity, -1, signal) : first;
}

async function endIdType(
  rows: RowStore,
  identity: Identity | undefined,
  direction: 1 | -1,
  signal: AbortSignal,
): Promise<DetectedIdType> {
  const plan: Plan = { sort: '_id', direction, ...(identity !== undefined && { identity }) };
  const batch = await rows.read(plan, {}, { rows: 1, bytes: 1 }, signal);
  try {
    return batch.last ? idTypeOf(keyOf(batch.last)._id) : null;
  } finally {
    batch.release();
  }
}

/**
 * The ids that a text can stand for, the likeliest first: the collection's own type, then the other types, the narrower
 * ones first. There is at most one id of each type, so trying all of them takes four reads.
 */
export function candidateIds(text: string, own: DetectedIdType): readonly Bookmark[] {
  const isOwn = (type: IdType) => type === own;
  const types = [...ID_TYPES.filter(isOwn), ...ID_TYPES.filter((type) => !isOwn(type))];
  return types.map((type) => parseId(text, type)).filter((bookmark) => bookmark !== null);
}

/** The id that a text stands for, as a bookmark. Null when no id of this type has this text, so no item can have it. */
export function parseId(text: string, type: IdType): Bookmark | null {
  const id = parse(text, type);
  return id === null ? null : makeBookmark({ _id: id });
}

function parse(text: string, type: IdType): unknown {
  switch (type) {
    case 'objectid':
      return /^[0-9a-f]{24}$/i.test(text) ? new ObjectId(text) : null;
    case 'uuid':
      return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? new UUID(text) : null;
    case 'integer':
      return parseInteger(text);
    case 'string':
      return Buffer.byteLength(text) <= MAX_ID_BYTES ? text : null;
  }
}

function parseInteger(text: string): Int32 | Long | null {
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) return null;
  const value = BigInt(text);
  if (value !== BigInt.asIntN(64, value)) return null;
  return value === BigInt.asIntN(32, value) ? new Int32(Number(value)) : Long.fromBigInt(value);
}

function idTypeOf(id: unknown): IdType | 'other' {
  if (id instanceof ObjectId) return 'objectid';
  if (id instanceof Binary && id.sub_type === Binary.SUBTYPE_UUID) return 'uuid';
  if (id instanceof Int32 || id instanceof Long || id instanceof Double) return 'integer';
  return typeof id === 'string' ? 'string' : 'other';
}
