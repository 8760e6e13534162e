import type { ChunkEntry } from '../../base/edition/head.ts';
import { Binary } from '../../store/values/bson.ts';
import { BSON_TYPE } from '../../store/values/bson-types.ts';
import type { TableSchema } from './schema.ts';

/** The statistics of a file in a Delta log. Readers leave out files whose ids cannot be those that they look for. */
interface Statistics {
  readonly numRecords: number;
  readonly minValues?: Readonly<Record<string, string | number>>;
  readonly maxValues?: Readonly<Record<string, string | number>>;
}

/** Longer texts would make the log long. */
const LONGEST = 256;
const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * The statistics of a chunk: its rows, and its first and last id where all between them are in this order in the column, too.
 * Numbers, texts, ObjectIds and dates follow one another by type, and some look the same in JSON, so chunks with ids of
 * several types have none. `before`: the chunk before it.
 */
export function statisticsOf(
  chunk: ChunkEntry,
  before: ChunkEntry | undefined,
  { columns, hasKey }: TableSchema,
): Statistics {
  const numRecords = chunk.rows;
  const [key] = columns;
  if (!hasKey || !key) return { numRecords };
  const { first, last } = chunk;
  const bounds = [first, last].every((id) => isBound(id, key.type)) && isOfOneType(chunk, before);
  if (!bounds) return { numRecords };
  return {
    numRecords,
    minValues: { [key.name]: first as string | number },
    maxValues: { [key.name]: last as string | number },
  };
}

/** Whether the column can have an id, as JSON gives it. */
function isBound(id: unknown, type: string): boolean {
  if (type === 'long' || type === 'double') return Number.isSafeInteger(id);
  if (typeof id !== 'string' || id.length > LONGEST) return false;
  return type === 'string' || (type === 'timestamp' && DATE.test(id));
}

/** Whether all ids of a chunk are of one type whose values are in the order of their JSON. Only numbers show as numbers. */
function isOfOneType({ first, bound }: ChunkEntry, before: ChunkEntry | undefined): boolean {
  if (typeof first === 'number') return true;
  const type = typeOf(bound);
  // Before texts, there are none whose JSON is a text.
  if (!before) return type === 'text';
  return type !== undefined && type === typeOf(before.bound);
}

/** The type of the id in a bookmark: a BSON document whose only element is `_id`. */
function typeOf(bound: string): string | undefined {
  const bytes = Buffer.from(bound, 'base64url');
  const value = 9;
  if (bytes[4] === BSON_TYPE.string) return 'text';
  if (bytes[4] === BSON_TYPE.objectId) return 'objectId';
  if (bytes[4] === BSON_TYPE.date) return 'date';
  const isUuid =
    bytes[4] === BSON_TYPE.binary && bytes[value] === 16 && bytes[value + 4] === Binary.SUBTYPE_UUID;
  return isUuid ? 'uuid' : undefined;
}
