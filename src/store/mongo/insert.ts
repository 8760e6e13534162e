import type { AnyBulkWriteOperation, Document } from 'mongodb';
import { MongoBulkWriteError } from 'mongodb';
import { storeUnavailable } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';
import { BSON } from '../bson.ts';
import type { MongoConnection } from './connection.ts';
import { CODES } from './errors.ts';
import { isPlainRow } from './plain-row.ts';
import { canSendRaw, insertRaw, type WriteError } from './raw-insert.ts';
import type { InsertResult, OnConflict } from '../store.ts';

/**
 * The largest document of MongoDB, in bytes. A replacement is sent inside an update statement, which has the same
 * limit.
 */
const LARGEST_ROW = 16 * 1024 * 1024;
const STATEMENT = 1024;
/** Reads each value as what it is in BSON. */
const CLASSES = { promoteValues: false, promoteBuffers: false, bsonRegExp: true };

/**
 * Writes rows (BSON documents) in one bulk. Writes every row that can be written and returns the others by index.
 * Resolves when a majority has the rows on disk. Rejects with `store-unavailable` when that is not certain: any part
 * of the rows may have been written.
 */
export async function insertRows(
  connection: MongoConnection,
  collection: string,
  rows: readonly Uint8Array[],
  onConflict: OnConflict,
  refusalOf: (row: Uint8Array) => string | null = () => null,
): Promise<InsertResult> {
  const writable: { readonly index: number; readonly document: Document }[] = [];
  const plain: number[] = [];
  const refused: InsertResult['refused'][number][] = [];
  const largest = LARGEST_ROW - (onConflict === 'replace' ? STATEMENT : 0);
  for (const [index, row] of rows.entries()) {
    const reason = refusalOf(row);
    if (reason !== null) {
      refused.push({ index, reason });
      continue;
    }
    if (onConflict !== 'replace' && canSendRaw && row.length <= largest && isPlainRow(row)) {
      plain.push(index);
      continue;
    }
    const document = readRow(row, largest);
    if (typeof document === 'string') refused.push({ index, reason: document });
    else writable.push({ index, document });
  }
  const operations = writable.map(({ document }) =>
    onConflict === 'replace' ? replacement(document) : { insertOne: { document } },
  );
  const failures = operations.length > 0 ? await write(connection, collection, operations) : [];
  const failed = failures.map((failure) => {
    const { index, document } = writable[failure.index] ?? { index: failure.index, document: {} };
    return { failure, index, document };
  });
  const sent = plain.map((index) => rows[index] ?? new Uint8Array());
  for (const error of sent.length > 0 ? await insertRaw(connection, collection, sent) : []) {
    const document = BSON.deserialize(sent[error.index] ?? new Uint8Array(), CLASSES);
    failed.push({ failure: failureOf(error), index: plain[error.index] ?? 0, document });
  }
  let skipped = 0;
  for (const { failure, index, document } of failed) {
    const isTaken = onConflict !== 'replace' && (await isIdTaken(connection, collection, failure, document));
    if (isTaken && onConflict === 'skip') skipped++;
    else refused.push({ index, reason: isTaken ? 'a row with its id exists' : failure.reason });
  }
  refused.sort((a, b) => a.index - b.index);
  return { written: operations.length + plain.length - failed.length, skipped, refused };
}

function failureOf({ index, code, errmsg = 'refused' }: WriteError): Failure {
  return { index, code, reason: `${errmsg} (MongoDB error ${code})` };
}

/** An operation that the server refused. */
interface Failure {
  readonly index: number;
  readonly code: number;
  readonly reason: string;
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
      // Written but not confirmed by a majority: the write may be rolled back.
      if (error.result.getWriteConcernError()) throw storeUnavailable(error);
      const failures = [error.writeErrors].flat();
      if (failures.length === 0) throw withinBulk(error);
      return failures.map(({ index, code, errmsg }) =>
        failureOf({ index, code, ...(errmsg !== undefined && { errmsg }) }),
      );
    }
  }, collection);
}

/**
 * Whether an insert failed because its id already exists. The message tells: a plain collection names the index of
 * _id, and a clustered one has no index for _id. A conflict on any other index is no conflict of ids. For some ids
 * (fractions, strings with NUL) MongoDB 6.0 fails to build the message for a clustered collection and reports that
 * failure (codes 15, 508xx). In that case the server is asked for the id.
 */
async function isIdTaken(
  connection: MongoConnection,
  collection: string,
  { code, reason }: Failure,
  { _id }: Document,
): Promise<boolean> {
  if (code === CODES.duplicateKey) return /(index: _id_|collection: \S+) dup key: \{ _id: /.test(reason);
  if (code === CODES.validation) return false;
  const find = {
    find: collection,
    filter: { _id: { $eq: _id as unknown } },
    limit: 1,
    projection: { _id: 1 },
  };
  const { cursor } = await connection.run(find, { readPreference: 'primary' });
  return (cursor as { firstBatch: Document[] }).firstBatch.length > 0;
}

/**
 * The error says nothing about rows: the connection broke, or the whole command was refused. A bulk wraps that error
 * in its own.
 */
function withinBulk(error: MongoBulkWriteError): Error {
  const wrapped: unknown = error.errorResponse;
  return wrapped instanceof Error ? wrapped : error;
}

/**
 * Replaces or inserts a row. In a replacement, names that begin with $ are operators, so such a row is sent as a
 * literal.
 */
function replacement(document: Document): AnyBulkWriteOperation {
  const filter = { _id: { $eq: document._id as unknown } } as Document;
  const hasOperators = Object.keys(document).some((name) => name.startsWith('$'));
  if (hasOperators)
    return { updateOne: { filter, update: [{ $replaceWith: { $literal: document } }], upsert: true } };
  return { replaceOne: { filter, replacement: document, upsert: true } };
}

/**
 * A row (a BSON document) in the form that the driver accepts. Returns a text instead, with what was expected and what
 * was found, when the row cannot be an item or would not be written unchanged.
 */
function readRow(row: Uint8Array, largest: number): Document | string {
  if (row.length > largest) return `a row has at most ${largest} bytes, got ${row.length}`;
  let document: Document;
  try {
    document = BSON.deserialize(row, CLASSES);
  } catch (error) {
    return `the bytes are no BSON document: ${reasonOf(error)}`;
  }
  // The driver writes JavaScript objects. A row that does not survive the conversion there and back would be changed
  // silently.
  if (Buffer.compare(BSON.serialize(document, { ignoreUndefined: false }), row) !== 0)
    return 'it has a value that cannot be stored unchanged (a deprecated type, a duplicate field name, a date out of range)';
  return document._id === undefined ? '_id is missing' : document;
}
