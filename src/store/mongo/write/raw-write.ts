import { createRequire } from 'node:module';
import { MongoServerError, type ClientSession, type Db, type Document } from 'mongodb';
import { bookmarkOf, KEY } from '../../bookmark.ts';
import { documentWith, elementOf } from '../../values/bson-elements.ts';
import { BSON_TYPE } from '../../values/bson-types.ts';
import { BSON, Long } from '../../values/bson.ts';
import { MAJORITY, ON_PRIMARY } from '../commands.ts';
import type { MongoConnection } from '../connection.ts';
import { mayRetry, translate } from '../errors.ts';

/** MongoDB accepts messages of 48 MB with 100,000 statements. */
const MESSAGE_BYTES = 16 * 1024 * 1024;
const MESSAGE_STATEMENTS = 10_000;
/** The error of a standalone server, whose writes cannot be repeated. */
const NO_TRANSACTION_NUMBERS = 20;

export interface WriteError {
  readonly index: number;
  readonly code: number;
  readonly errmsg?: string;
}

interface WriteResult {
  /** Rows that were inserted, matched by an update, or deleted. */
  readonly rows: number;
  readonly errors: readonly WriteError[];
}

/** The driver's class for documents of a command that are bytes already. */
type Sequence = new (field: string) => { push(document: Document, bytes: Uint8Array): number };

/**
 * The driver does not export this class, which its bulk writes use. With it an insert takes 1.2 s of CPU for a million
 * rows of 205 bytes; bulkWrite takes 18 s, since it reads each row into an object and writes it again.
 */
const { DocumentSequence } = createRequire(import.meta.url)('mongodb/lib/cmap/commands.js') as {
  readonly DocumentSequence: Sequence;
};

const FIELDS = { insert: 'documents', update: 'updates', delete: 'deletes' } as const;

/**
 * Sends statements, which are BSON documents: for an insert the rows themselves. Carries out each one that the server
 * accepts, and resolves with the others once a majority has the writes on disk. Rejects with `store-unavailable` when
 * that is not certain: any part may have been written.
 */
export async function writeRaw(
  connection: MongoConnection,
  collection: string,
  command: keyof typeof FIELDS,
  statements: readonly Uint8Array[],
): Promise<WriteResult> {
  const errors: WriteError[] = [];
  let rows = 0;
  for (let at = 0; at < statements.length;) {
    const start = at;
    const message = new DocumentSequence(FIELDS[command]);
    for (
      let bytes = 0;
      at < statements.length && at - start < MESSAGE_STATEMENTS && bytes < MESSAGE_BYTES;
      at++
    ) {
      const statement = statements[at] ?? new Uint8Array();
      message.push({}, statement);
      bytes += statement.length;
    }
    const whole = { [command]: collection, ordered: false, [FIELDS[command]]: message };
    const reply = await connection.write((db, session) => send(db, whole, session));
    const refused = (reply.writeErrors ?? []) as readonly WriteError[];
    rows += Number(reply.n);
    errors.push(...refused.map((error) => ({ ...error, index: start + error.index })));
  }
  return { rows, errors };
}

/** Sends the command, and once more when its outcome is unknown: the server knows its number, and writes nothing twice. */
async function send(db: Db, write: Document, session: ClientSession): Promise<Document> {
  const { serverSession } = session;
  serverSession.txnNumber++; // the driver, which takes the same session for later writes, counts on from here
  const command = { ...write, writeConcern: MAJORITY };
  const numbered = { ...command, txnNumber: Long.fromNumber(serverSession.txnNumber) };
  const ask = (asked: Document) => db.command(asked, { session, ...ON_PRIMARY });
  return ask(numbered).catch(async (error: unknown) => {
    if (isStandalone(error)) return ask(command);
    if (!mayRetry(error)) throw error;
    return ask(numbered).catch((again: unknown) => {
      throw isStandalone(again) ? error : again;
    });
  });
}

export function refuseErrors([error]: readonly WriteError[]): void {
  if (error) throw translate(new MongoServerError({ ...error }));
}

function isStandalone(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === NO_TRANSACTION_NUMBERS;
}

/** Replaces a row, or inserts it. */
export function replacement(row: Uint8Array): Uint8Array {
  return documentWith(byKey(row), elementOf(BSON_TYPE.document, 'u', row), elementsOf({ upsert: true }));
}

/**
 * Deletes the rows of these keys (bookmarks `{_id}`). Resolves with their number when a majority has deleted them.
 * Rejects as writeRaw does, and with the server's error when it refuses one.
 */
export async function deleteRaw(
  connection: MongoConnection,
  collection: string,
  keys: readonly Uint8Array[],
): Promise<number> {
  // One condition each: `$in` on the key of a clustered collection reads all rows between the lowest and the highest.
  const statements = keys.map((key) => documentWith(byKey(key), elementsOf({ limit: 1 })));
  const { rows, errors } = await writeRaw(connection, collection, 'delete', statements);
  refuseErrors(errors);
  return rows;
}

/** Replaces a row, or deletes it (null), if it is still as it was. */
export function changed(before: Uint8Array, after: Uint8Array | null): Uint8Array {
  const same = documentWith(
    elementsOf({ 0: '$$ROOT' }),
    elementOf(BSON_TYPE.document, '1', literalOf(before)),
  );
  const isSame = documentWith(elementOf(BSON_TYPE.array, '$eq', same));
  const query = documentWith(keyOf(before), elementOf(BSON_TYPE.document, '$expr', isSame));
  const q = elementOf(BSON_TYPE.document, 'q', query);
  const end = elementsOf({ limit: 1 });
  return after ? documentWith(q, elementOf(BSON_TYPE.document, 'u', after)) : documentWith(q, end);
}

function literalOf(row: Uint8Array): Uint8Array {
  return documentWith(elementOf(BSON_TYPE.document, '$literal', row));
}

function byKey(row: Uint8Array): Uint8Array {
  return elementOf(BSON_TYPE.document, 'q', documentWith(keyOf(row)));
}

/** The condition that the key is that of a row. */
function keyOf(row: Uint8Array): Uint8Array {
  const key = bookmarkOf(row, { sort: KEY }); // one element: length, type, name, value
  const type = key[4] ?? 0;
  const value = key.subarray(4 + 1 + KEY.length + 1, -1);
  return elementOf(BSON_TYPE.document, KEY, documentWith(elementOf(type, '$eq', value)));
}

function elementsOf(values: Document): Uint8Array {
  return BSON.serialize(values).subarray(4, -1);
}
