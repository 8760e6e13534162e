import { createRequire } from 'node:module';
import { MongoServerError, MongoWriteConcernError } from 'mongodb';
import type { ClientSession, Db, Document } from 'mongodb';
import { storeUnavailable } from '../../errors.ts';
import { codeOf } from '../../thrown.ts';
import { Long } from '../bson.ts';
import type { MongoConnection } from './connection.ts';
import { mayRetry } from './errors.ts';

/** MongoDB accepts messages of 48 MB with 100,000 rows. */
const MESSAGE_BYTES = 16 * 1024 * 1024;
const MESSAGE_ROWS = 10_000;
/** The error of a standalone server, whose writes cannot be repeated. */
const NO_TRANSACTION_NUMBERS = 20;

/** A row that the server refused. */
export interface WriteError {
  readonly index: number;
  readonly code: number;
  readonly errmsg?: string;
}

/** The driver's class for documents of a command that are bytes already. */
type Sequence = new (field: string) => { push(document: Document, bytes: Uint8Array): number };

const DocumentSequence = sequenceClass();

/** Whether this version of the driver can send rows as bytes. */
export const canSendRaw = DocumentSequence !== null;

/**
 * The driver does not export this class, which its bulk writes use. With it an insert takes 1.2 s of CPU for a million
 * rows of 205 bytes; bulkWrite takes 18 s, since it reads each row into an object and writes it again.
 */
function sequenceClass(): Sequence | null {
  try {
    const require = createRequire(import.meta.url);
    const found = require('mongodb/lib/cmap/commands.js') as { readonly DocumentSequence?: Sequence };
    return found.DocumentSequence ?? null;
  } catch (error) {
    if (codeOf(error) === 'MODULE_NOT_FOUND' || codeOf(error) === 'ERR_PACKAGE_PATH_NOT_EXPORTED')
      return null;
    throw error;
  }
}

/**
 * Inserts rows, which must be plain (see isPlainRow), without reading them. Writes every row that can be written, and
 * resolves with the others once a majority has the rows on disk. Rejects as insertRows does.
 */
export async function insertRaw(
  connection: MongoConnection,
  collection: string,
  rows: readonly Uint8Array[],
): Promise<readonly WriteError[]> {
  const errors: WriteError[] = [];
  for (let at = 0; at < rows.length;) {
    const start = at;
    const message = newSequence();
    for (let bytes = 0; at < rows.length && at - start < MESSAGE_ROWS && bytes < MESSAGE_BYTES; at++) {
      const row = rows[at] ?? new Uint8Array();
      message.push({}, row);
      bytes += row.length;
    }
    const command = { insert: collection, ordered: false, documents: message };
    const found = await connection.write((_, { session }, db) => send(db, command, session), collection);
    errors.push(...found.map((error) => ({ ...error, index: start + error.index })));
  }
  return errors;
}

function newSequence() {
  if (!DocumentSequence) throw new TypeError('this version of the driver cannot send rows as bytes');
  return new DocumentSequence('documents');
}

/** Sends the command, and once more when its outcome is unknown: the server knows its number, and does not insert twice. */
async function send(
  db: Db,
  insert: Document,
  session: ClientSession | undefined,
): Promise<readonly WriteError[]> {
  if (!session) throw new TypeError('a write has a session');
  const { serverSession } = session;
  serverSession.txnNumber++; // the driver, which takes the same session for later writes, counts on from here
  const writeConcern = { w: 'majority', j: true, wtimeout: 60_000 };
  const command = { ...insert, writeConcern };
  const numbered = { ...command, txnNumber: Long.fromNumber(serverSession.txnNumber) };
  const ask = (asked: Document) => db.command(asked, { session, readPreference: 'primary' });
  try {
    const reply = await ask(numbered).catch((error: unknown) => {
      if (isStandalone(error)) return ask(command);
      if (mayRetry(error)) return ask(numbered);
      throw error;
    });
    // Written but not confirmed by a majority: the write may be rolled back.
    if (reply.writeConcernError)
      throw storeUnavailable(new MongoServerError(reply.writeConcernError as Document));
    return (reply.writeErrors ?? []) as readonly WriteError[];
  } catch (error) {
    throw error instanceof MongoWriteConcernError ? storeUnavailable(error) : error;
  }
}

function isStandalone(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === NO_TRANSACTION_NUMBERS;
}
