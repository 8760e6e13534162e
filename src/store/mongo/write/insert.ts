import { bookmarkOf, KEY, KEY_EXISTS } from '../../bookmark.ts';
import { elementsIn } from '../../values/fields.ts';
import type { RowCheck } from '../../values/row-check.ts';
import type { InsertResult, OnConflict } from '../../store.ts';
import { documentsOf, findOne, ON_PRIMARY } from '../commands.ts';
import type { MongoConnection } from '../connection.ts';
import { CODES } from '../errors.ts';
import { commandKey } from '../read/bookmark-in-command.ts';
import { replacement, writeRaw, type WriteError } from './raw-write.ts';

/** MongoDB's largest document, in bytes. A replacement is inside an update statement, which has the same limit. */
const LARGEST_ROW = 16 * 1024 * 1024;
const STATEMENT = 1024;
const KEY_NAME = Buffer.from(KEY);

/**
 * Writes rows (BSON documents), as the bytes that they are. Writes every row that can be written and returns the others
 * by index. Resolves when a majority has the rows on disk. Rejects as writeRaw does.
 */
export async function insertRows(
  connection: MongoConnection,
  collection: string,
  rows: readonly Uint8Array[],
  onConflict: OnConflict,
  check?: RowCheck,
): Promise<InsertResult> {
  const isReplacing = onConflict === 'replace';
  const largest = LARGEST_ROW - (isReplacing ? STATEMENT : 0);
  const sent: { readonly index: number; readonly row: Uint8Array }[] = [];
  const refused: InsertResult['refused'][number][] = [];
  const names = [KEY_NAME, ...(check?.names ?? [])];
  for (const [index, row] of rows.entries()) {
    const reason =
      row.length > largest
        ? `a row has at most ${largest} bytes, got ${row.length}`
        : faultOf(row, names, check);
    if (reason === null) sent.push({ index, row });
    else refused.push({ index, reason });
  }
  const statements = sent.map(({ row }) => (isReplacing ? replacement(row) : row));
  const { errors } = await writeRaw(connection, collection, isReplacing ? 'update' : 'insert', statements);
  let skipped = 0;
  for (const error of errors) {
    const { index, row } = sent[error.index] ?? { index: error.index, row: new Uint8Array() };
    const isTaken = !isReplacing && (await isIdTaken(connection, collection, error, row));
    if (isTaken && onConflict === 'skip') skipped++;
    else {
      const { code, errmsg = 'refused' } = error;
      refused.push({
        index,
        reason: isTaken ? KEY_EXISTS : `${errmsg} (MongoDB error ${code})`,
      });
    }
  }
  refused.sort((a, b) => a.index - b.index);
  return { written: statements.length - errors.length, skipped, refused };
}

/**
 * Why the bytes are no row. The server refuses those whose key has a type that no key can have. `names`: `_id`, and those of
 * the check.
 */
function faultOf(row: Uint8Array, names: readonly Uint8Array[], check?: RowCheck): string | null {
  const elements = elementsIn(row, names);
  if (typeof elements === 'string') return elements;
  const [key, ...checked] = elements;
  if (!key) return '_id is missing';
  return check ? check.refusalOf(row, checked) : null;
}

/**
 * Whether an insert failed because its id already exists. The message says so: a plain collection names the index of
 * _id, and a clustered one has no index for _id. A conflict on any other index is no conflict of ids. For some ids
 * (fractions, strings with NUL) MongoDB 6.0 fails to build the message for a clustered collection and reports that
 * failure (codes 15, 508xx). In that case the server is asked for the id.
 */
async function isIdTaken(
  connection: MongoConnection,
  collection: string,
  { code, errmsg = '' }: WriteError,
  row: Uint8Array,
): Promise<boolean> {
  if (code === CODES.duplicateKey) return /(index: _id_|collection: \S+) dup key: \{ _id: /.test(errmsg);
  if (code === CODES.validation) return false;
  const filter = { _id: { $eq: commandKey(bookmarkOf(row, { sort: KEY }))._id } };
  return (await documentsOf(connection, findOne(collection, undefined, filter), ON_PRIMARY)).length > 0;
}
