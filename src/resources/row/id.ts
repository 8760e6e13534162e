import { AppError } from '../../errors.ts';
import { exactDate } from '../../input/dates.ts';
import { Binary, Double, EJSON, Timestamp } from '../../store/bson.ts';
import { BSON_RANK, rankOf } from '../../store/bson-types.ts';
import { makeBookmark, type Bookmark } from '../../store/bookmark.ts';
import type { Identity, Collection, Plan } from '../../store/store.ts';
import { decimalOf, integerOf, objectIdOf, uuidOf } from '../../store/value-texts.ts';

/** A longer text is the id of no row. Bytes of UTF-8. */
export const MAX_ID_BYTES = 256;

export const ID_TYPES = ['objectid', 'integer', 'uuid', 'string'] as const;
export type IdType = (typeof ID_TYPES)[number];

/** Resolves to the ids that a text in a URL can stand for, the likeliest first. */
export type ReadId = (text: string, signal: AbortSignal) => Promise<readonly IdReading[]>;

/**
 * How ids in URLs are read. A configured type (`only`) is the only one. Otherwise the ids of the first row's rank are
 * likelier than others. That row is read once for each collection that has the name.
 */
export function idReader(rows: Collection, only: IdType | undefined): ReadId {
  if (only !== undefined)
    return (text) =>
      Promise.resolve(
        readingsOf(
          text,
          READERS.filter(({ read }) => read === TYPED[only]),
        ),
      );
  let known: { readonly rank: number; readonly identity: Identity | undefined } | null = null;
  const look = async (signal: AbortSignal): Promise<number | null> => {
    const { identity } = await rows.describe(signal);
    if (known?.identity === identity && known) return known.rank;
    const rank = await endRank(rows, 1, signal, identity);
    known = rank === null ? null : { rank, identity };
    return rank;
  };
  return async (text, signal) => {
    const own = await look(signal).catch((error: unknown) => {
      // The collection was replaced since the last request. The store knows the new one by now.
      if (error instanceof AppError && error.code === 'collection-replaced') return look(signal);
      throw error;
    });
    const all = readingsOf(text, READERS);
    return [...all.filter(({ rank }) => rank === own), ...all.filter(({ rank }) => rank !== own)];
  };
}

/** The rank of the first id in a direction. Null when there is no row. */
export async function endRank(
  rows: Pick<Collection, 'read'>,
  direction: 1 | -1,
  signal: AbortSignal,
  identity?: Identity,
): Promise<number | null> {
  const plan: Plan = { sort: '_id', direction, ...(identity !== undefined && { identity }) };
  const batch = await rows.read(plan, {}, { rows: 1, bytes: 1 }, signal);
  try {
    return batch.last ? rankOf(batch.last[TYPE_AT] ?? 0) : null;
  } finally {
    batch.release();
  }
}

/** Where the type of a document's first element is. */
const TYPE_AT = 4;

/** An id that a text can show. */
export interface IdReading {
  readonly id: Bookmark;
  /** See BSON_RANK. */
  readonly rank: number;
  /** Whether rows whose ids have this rank show this text at one place only, so that no row needs to be there. */
  readonly isPlace: boolean;
}

function readingsOf(text: string, readers: typeof READERS): readonly IdReading[] {
  return readers.flatMap(({ rank, isPlace = true, read }) =>
    read(text).map((value): IdReading => ({ id: makeBookmark({ _id: value }), rank, isPlace })),
  );
}

/** The values of one type that are shown as a text. */
type Read = (text: string) => readonly unknown[];

const TYPED: Readonly<Record<IdType, Read>> = {
  objectid: (text) => present(objectIdOf(text)),
  uuid: (text) => present(uuidOf(text)),
  integer: (text) => present(integerOf(text)),
  string: (text) => (Buffer.byteLength(text) <= MAX_ID_BYTES ? [text] : []),
};

/** How the ids of each rank are shown. `isPlace`: see IdReading; true if missing. */
const READERS: readonly { readonly rank: number; readonly isPlace?: boolean; readonly read: Read }[] = [
  { rank: BSON_RANK.objectId, read: TYPED.objectid },
  { rank: BSON_RANK.number, read: TYPED.integer },
  { rank: BSON_RANK.number, read: otherNumbers },
  { rank: BSON_RANK.number, isPlace: false, read: (text) => (text === 'null' ? NO_NUMBERS : []) },
  { rank: BSON_RANK.null, read: (text) => (text === 'null' ? [null] : []) },
  { rank: BSON_RANK.binary, read: TYPED.uuid },
  { rank: BSON_RANK.date, read: dates },
  { rank: BSON_RANK.boolean, read: (text) => (text === 'true' || text === 'false' ? [text === 'true'] : []) },
  { rank: BSON_RANK.timestamp, read: timestamps },
  { rank: BSON_RANK.document, isPlace: false, read: documents },
  // Binary values of all subtypes are shown alike.
  { rank: BSON_RANK.binary, isPlace: false, read: binaries },
  { rank: BSON_RANK.string, read: TYPED.string },
];

/** Numbers that are shown as null. */
const NO_NUMBERS = [new Double(NaN), new Double(-Infinity), new Double(Infinity)];

/** 0.1 as a double and as a decimal are two numbers. No number is shown with more digits than a decimal has. */
function otherNumbers(text: string): readonly unknown[] {
  const decimal = decimalOf(text);
  if (!decimal) return [];
  const double = Number(text);
  return [...(Number.isFinite(double) ? [new Double(double)] : []), decimal];
}

function present(value: unknown): readonly unknown[] {
  return value === null ? [] : [value];
}

/** Dates as toISOString writes them, or as Extended JSON beyond JavaScript's range. */
function dates(text: string): readonly unknown[] {
  const date = exactDate(text, false);
  return typeof date !== 'string' && date.toISOString() === text ? [date] : [];
}

function timestamps(text: string): readonly unknown[] {
  const [, t, i] = /^\{"\$timestamp":\{"t":(\d{1,10}),"i":(\d{1,10})\}\}$/.exec(text) ?? [];
  return t === undefined ? [] : [new Timestamp({ t: Number(t), i: Number(i) })];
}

/** Documents whose members JSON shows without loss. */
function documents(text: string): readonly unknown[] {
  if (!text.startsWith('{')) return [];
  try {
    const value: unknown = EJSON.parse(text);
    return [value];
  } catch (error) {
    if (error instanceof Error) return []; // no JSON, or no valid Extended JSON
    throw error;
  }
}

function binaries(text: string): readonly unknown[] {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) return [];
  return SUBTYPES.map((subtype) => new Binary(bytes, subtype));
}

/** The subtypes of binary values that are shown in base64. */
const SUBTYPES = [0, 1, 3, 5, 6, 7, 8, 9, 128];
