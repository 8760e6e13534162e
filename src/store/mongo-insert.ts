import type { AnyBulkWriteOperation, Document } from 'mongodb';
import { MongoBulkWriteError } from 'mongodb';
import { storeUnavailable } from '../errors.ts';
import { BSON, Decimal128, Double, Int32, Long } from './bson.ts';
import type { MongoConnection } from './mongo-connection.ts';
import { CODES } from './mongo-errors.ts';
import type { InsertResult, OnConflict } from './store.ts';

/** MongoDB's largest document. A replacement travels inside an update statement, which may not be larger either. */
const LARGEST_ROW = 16 * 1024 * 1024;
const STATEMENT = 1024;

type Refused = InsertResult['refused'][number];

/**
 * Writes rows (BSON documents) in one bulk: what can be written is, the rest is told by its index. Resolves when a
 * majority has it on disk. Rejects with `store-unavailable` when that is not certain: any part may then be there.
 */
export async function insertRows(
  connection: MongoConnection,
  collection: string,
  rows: readonly Uint8Array[],
  onConflict: OnConflict,
): Promise<InsertResult> {
  const operations: AnyBulkWriteOperation[] = [];
  const indexes: number[] = [];
  const refused: Refused[] = [];
  rows.forEach((row, index) => {
    const read = readRow(row, onConflict);
    if (typeof read === 'string') return refused.push({ index, reason: read });
    operations.push(onConflict === 'replace' ? replacement(read) : { insertOne: { document: read } });
    return indexes.push(index);
  });
  const failures = operations.length > 0 ? await write(connection, collection, operations) : [];
  let skipped = 0;
  for (const { at, code, reason, isIdTaken } of failures) {
    if (onConflict === 'skip' && isIdTaken) skipped++;
    else
      refused.push({
        index: indexes[at] ?? at,
        reason: isIdTaken ? 'its id is there already' : `${reason} (MongoDB error ${code})`,
      });
  }
  refused.sort((a, b) => a.index - b.index);
  return { written: operations.length - failures.length, skipped, refused };
}

interface Failure {
  /** Index among the operations. */
  readonly at: number;
  readonly code: number;
  readonly reason: string;
  readonly isIdTaken: boolean;
}

async function write(
  connection: MongoConnection,
  collection: string,
  operations: AnyBulkWriteOperation[],
): Promise<Failure[]> {
  return connection.write(async (items, options) => {
    try {
      await items.bulkWrite(operations, options);
      return [];
    } catch (error) {
      if (!(error instanceof MongoBulkWriteError)) throw error;
      const failures = [error.writeErrors].flat();
      // Written but not confirmed by a majority: it may be rolled back.
      if (error.result.getWriteConcernError()) throw storeUnavailable(error);
      if (failures.length === 0) throw error;
      return failures.map(({ index, code, errmsg = 'refused' }) => ({
        at: index,
        code,
        reason: errmsg,
        // A plain collection names the index, a clustered one has none for _id. Another unique index is no conflict of ids.
        isIdTaken:
          code === CODES.duplicateKey && /(index: _id_|collection: \S+) dup key: \{ _id: /.test(errmsg),
      }));
    }
  }, collection);
}

/** The row as the driver takes it; a text when it cannot be written: what was expected and what came. */
function readRow(row: Uint8Array, onConflict: OnConflict): Document | string {
  const largest = LARGEST_ROW - (onConflict === 'replace' ? STATEMENT : 0);
  if (row.length > largest) return `a row has at most ${largest} bytes, got ${row.length}`;
  let document: Document;
  try {
    document = BSON.deserialize(row, { promoteValues: false, promoteBuffers: false, bsonRegExp: true });
  } catch (error) {
    return `the bytes are no BSON document: ${error instanceof Error ? error.message : String(error)}`;
  }
  // The driver writes JavaScript objects: a row that does not survive the way there and back would be changed silently.
  if (Buffer.compare(BSON.serialize(document, { ignoreUndefined: false }), row) !== 0)
    return 'it holds a value that cannot be written unchanged (a deprecated type, a double name, a date out of range)';
  return faultOf(document) ?? document;
}

/** What a collection's validator would say, said for plain collections too. */
function faultOf({ _id, category, price }: Document): string | null {
  if (_id === undefined) return '_id is missing';
  if (typeof category !== 'string') return 'category is no string';
  const isNumber = [Int32, Long, Double, Decimal128].some((type) => price instanceof type);
  if (!isNumber) return 'price is no number';
  return Number.isFinite(Number(String(price)))
    ? null
    : `price is ${String(price)}, expected a finite number`;
}

/** Replaces or creates. Names that begin with $ are operators in a replacement, so such a row goes as a literal. */
function replacement(document: Document): AnyBulkWriteOperation {
  const filter = { _id: { $eq: document._id as unknown } } as Document;
  const hasOperators = Object.keys(document).some((name) => name.startsWith('$'));
  if (hasOperators)
    return { updateOne: { filter, update: [{ $replaceWith: { $literal: document } }], upsert: true } };
  return { replaceOne: { filter, replacement: document, upsert: true } };
}
