import { randomBytes } from 'node:crypto';
import type { Connection, SqlRow } from './connection.ts';

/** The format of the file. A program does not open a file of a later one. */
export const FORMAT = 'sluice 4';
/** Files of version 0.3. Their layout is the same, but 0.3 takes a log of ours for damaged, so that it must not open it. */
const OLD_FORMAT = 'sluice 3';

/**
 * The file:
 *
 * - `meta`: the format, the id of the store, counters.
 * - `epochs`: the epochs of its history (see epochs.ts).
 * - `sets`: a row for each collection of rows (see collections.ts).
 * - `s<number>`: the rows of a collection. `k` is the key of the row, `d` the document with its checksum, `i<number>` the key
 *   in an index: the keys of its values and then that of the row. Keys are ordered as BSON orders values (see keys.ts).
 * - `l<number>`: the log of the collection's changes (see log.ts).
 *
 * The names of tables and columns come from numbers only.
 */
const SCHEMA = `
  create table meta(key text primary key, value) without rowid;
  create table sets(name text primary key, record blob not null, rows integer not null, floor integer not null)
    without rowid;
  insert into meta values ('format', '${FORMAT}'), ('made', 0), ('number', 0), ('stops', 0)`;

/** Makes the tables of a new file. In a transaction. */
export function createLayout(connection: Connection): void {
  connection.exec(SCHEMA);
  setMeta(connection, 'id', randomBytes(16).toString('hex'));
  setMeta(connection, 'secret', randomBytes(32).toString('hex'));
}

/** Makes of a file of version 0.3 one of this format: a table of epochs with a first one, which it has in `meta`. In a transaction. */
export function createEpochs(connection: Connection): void {
  connection.exec(
    `create table if not exists epochs(n integer primary key, name text not null unique, begun integer not null,
     lasts blob not null)`,
  );
  if (meta(connection, 'format') !== FORMAT) setMeta(connection, 'format', FORMAT);
  if (connection.get('select max(n) n from epochs')?.n !== null) return;
  const first = meta(connection, 'epoch') ?? newEpoch();
  connection.run('insert into epochs values (0, ?, 0, ?)', first, new Uint8Array(0));
}

export function latestEpoch(connection: Connection): string {
  return String(connection.get('select name from epochs where n = (select max(n) from epochs)')?.name);
}

/** False also for a file that has no epochs yet. */
export function knowsEpoch(connection: Connection, epoch: string): boolean {
  const hasEpochs = connection.get("select 1 from sqlite_schema where name = 'epochs'") !== undefined;
  return hasEpochs && connection.get('select 1 from epochs where name = ?', epoch) !== undefined;
}

/** Throws an Error for a file of another program or format. */
export function assertOurs(connection: Connection): void {
  const isOurs = connection.get("select 1 from sqlite_schema where name = 'meta'") !== undefined;
  const format = isOurs ? meta(connection, 'format') : null;
  if (format === null) throw new Error('it is a file of another program: set another DATA_DIR');
  if (format !== FORMAT && format !== OLD_FORMAT)
    throw new Error(`it has the format "${format}", this version reads "${FORMAT}"`);
}

export function newEpoch(): string {
  return randomBytes(8).toString('hex');
}

export function meta(connection: Connection, key: string): string | number | null {
  const value = connection.get('select value from meta where key = ?', key)?.value;
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

/** In a transaction. */
export function setMeta(connection: Connection, key: string, value: string | number): void {
  connection.run('insert or replace into meta values (?, ?)', key, value);
}

export function rowsTable(number: number): string {
  return `s${number}`;
}

/** Columns, `n` among them, of all rows of a set by their numbers. */
export function* rowsIn(
  connection: Connection,
  number: number,
  columns: readonly string[],
  atOnce: number,
): Generator<SqlRow, void, undefined> {
  const sql = `select ${columns.join()} from ${rowsTable(number)} where n > ? order by n limit ${atOnce}`;
  for (
    let rows = connection.all(sql, -1);
    rows.length > 0;
    rows = connection.all(sql, rows.at(-1)?.n ?? null)
  )
    yield* rows;
}

export function logTable(number: number): string {
  return `l${number}`;
}

export function columnOf(index: number): string {
  return `i${index}`;
}

/** The columns of indexes, in their order. */
export function columnsOf(indexes: readonly { readonly number: number }[]): string[] {
  return indexes.map(({ number }) => columnOf(number));
}

export function indexName(number: number, column: string): string {
  return `${column}_${number}`;
}

/** The statements that make the tables of a collection, without indexes. */
export function tablesSql(number: number, indexes: readonly { readonly number: number }[]): string {
  const columns = columnsOf(indexes)
    .map((column) => `, ${column} blob`)
    .join('');
  return `create table ${rowsTable(number)}(n integer primary key, k blob not null, d blob not null${columns});
    create table ${logTable(number)}(seq integer primary key, id blob not null, at integer not null, b blob, a blob);`;
}

/** The statement that makes an index of a column, that of the key included. */
export function indexSql(number: number, column: string): string {
  const kind = column === 'k' ? 'unique index' : 'index';
  return `create ${kind} if not exists ${indexName(number, column)} on ${rowsTable(number)}(${column});`;
}

export function dropSql(number: number): string {
  return `begin immediate; drop table if exists ${rowsTable(number)}; drop table if exists ${logTable(number)}; commit;`;
}
