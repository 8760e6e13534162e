import { DatabaseSync } from '../base/sqlite.ts';
import { MOST_COLUMNS, SAMPLED_ROWS } from '../rows/csv-cell.ts';
import { HeldLines, type Copy } from './copy.ts';
import type { EditionCopy, RowKey } from './edition/copy-edition.ts';
import { REMOVAL_BEGINNING } from './lines.ts';
import { BEGINNING, type ProvedPlace } from './proof.ts';
import { Refusal } from './retry.ts';
import { canBeColumn, columnValue, quotedName, quotedText } from './sqlite-columns.ts';
import { keyOf, memberOf } from './sqlite-keys.ts';
import { reasonOf } from '../base/error-reason.ts';

type Database = InstanceType<typeof DatabaseSync>;
type Statement = ReturnType<Database['prepare']>;

/** The table that says of each other table what it is a copy of, and how far. */
const PULLS = 'sluice_pulls';
/** The table that says which edition each of them was brought to last. */
const EDITIONS = 'sluice_editions';
/** How long to wait for another program that writes the file. Milliseconds. */
const BUSY_MS = 10_000;
/** Columns that the table has itself. SQLite does not distinguish cases. */
const OWN_COLUMNS = new Set(['id', 'row', 'rowid', 'oid', '_rowid_']);
/**
 * A table of a SQLite file as a copy of a set: `id`, `row` (the whole row as JSON), and a virtual column for each field.
 * Rows and place change in one transaction, so a kill leaves the copy at a place that it knows. Throws Refusal when the
 * table is a copy of something else.
 */
export function openSqliteCopy(path: string, url: URL, restart: boolean): Copy {
  const database = openDatabase(path);
  try {
    const place = placeIn(database, path, url, restart);
    return new SqliteCopy(database, path, url, place);
  } catch (error) {
    database.close();
    throw error;
  }
}

function openDatabase(path: string): Database {
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA journal_mode = WAL'); // other programs may read meanwhile
    database.exec('PRAGMA synchronous = NORMAL');
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    return database;
  } catch (error) {
    database.close();
    throw new Refusal(`${path} cannot be used as a SQLite file: ${reasonOf(error)}`, { cause: error });
  }
}

/** The place that an earlier run reached. */
function placeIn(database: Database, path: string, url: URL, restart: boolean): ProvedPlace {
  const table = tableOf(url);
  database.exec(`CREATE TABLE IF NOT EXISTS ${PULLS} (name TEXT PRIMARY KEY, url TEXT, place TEXT)`);
  database.exec(`CREATE TABLE IF NOT EXISTS ${EDITIONS} (name TEXT PRIMARY KEY, edition TEXT)`);
  if (restart) {
    database.exec(`DROP TABLE IF EXISTS ${quotedName(table)}`);
    for (const state of [PULLS, EDITIONS]) database.prepare(`DELETE FROM ${state} WHERE name = ?`).run(table);
  }
  const known = database.prepare(`SELECT url, place FROM ${PULLS} WHERE name = ?`).get(table) as
    { readonly url: string; readonly place: string } | undefined;
  if (known && known.url !== url.href)
    throw new Refusal(`the table ${table} of ${path} is a copy of ${known.url}: --restart replaces it`);
  if (!known && columnsIn(database, table) > 0)
    throw new Refusal(`${path} has a table ${table} that is not a copy: --restart replaces it`);
  return known ? (JSON.parse(known.place) as ProvedPlace) : BEGINNING;
}

class SqliteCopy implements Copy, EditionCopy {
  readonly name: string;
  readonly #database: Database;
  readonly #url: URL;
  /** The name of the table, plain and quoted. */
  readonly #tableName: string;
  readonly #table: string;
  readonly #held = new HeldLines();
  #place: ProvedPlace;
  /** Whether it is known that no two rows have one id as JSON shows it. The stored place says so by `ended`. */
  #isConfirmed: boolean;
  #hasColumns: boolean;
  /** Whether the rows go with the next proof: they have no place, such as chunks of an edition that is not whole. */
  #isVoid: boolean;
  /** What the transaction of an edition makes the place. */
  #next: ProvedPlace | null = null;

  constructor(database: Database, path: string, url: URL, from: ProvedPlace) {
    this.#database = database;
    this.#url = url;
    this.#tableName = tableOf(url);
    this.#table = quotedName(this.#tableName);
    this.name = `${path}, table ${this.#tableName}`;
    this.#place = { ...from, ended: false };
    this.#isConfirmed = from.ended;
    this.#isVoid = from.cursor === null;
    this.#hasColumns = columnsIn(database, this.#tableName) > 2;
  }

  get place(): ProvedPlace {
    return this.#place;
  }

  add(bytes: Uint8Array): void {
    this.#held.add(bytes);
  }

  prove(next: ProvedPlace): void {
    const lines = linesOf(this.#held.take());
    this.#inTransaction(() => {
      this.#apply(lines);
      this.#writePlace(next);
    });
    this.#place = next;
    this.#isVoid = false;
  }

  takeBack(): void {
    this.#held.take();
  }

  restart(): void {
    this.#held.take();
    this.#isVoid = true;
    this.#isConfirmed = false;
  }

  /**
   * Each line since the beginning made a key of its own, or was a change of a row. Ids of several kinds may look alike
   * as JSON, and then one of their rows is lost. So the keys are compared where there are fewer of them than lines.
   */
  async confirm(rows: () => AsyncIterable<Buffer>): Promise<void> {
    if (this.#isConfirmed) return;
    if (this.count() < this.#place.rows) await this.#compareIds(rows());
    this.#isConfirmed = true;
    this.#inTransaction(() => this.#writePlace(this.#place));
  }

  close(): void {
    this.#database.close();
  }

  get asEdition(): EditionCopy {
    return this;
  }

  get edition(): string | null {
    const found = this.#database
      .prepare(`SELECT edition FROM ${EDITIONS} WHERE name = ?`)
      .get(this.#tableName) as { readonly edition: string } | undefined;
    return found?.edition ?? null;
  }

  begin(): void {
    this.#database.exec('BEGIN IMMEDIATE');
    this.#database.exec(tableText(this.#table));
    this.#writePlace(this.#place); // so the table is known as a copy, also when it is not whole
  }

  commit(): void {
    this.#database.exec('COMMIT');
    if (!this.#next) return;
    this.#place = this.#next;
    this.#next = null;
    this.#isVoid = false;
    this.#isConfirmed = true;
  }

  rollback(): void {
    this.#next = null;
    if (this.#database.isTransaction) this.#database.exec('ROLLBACK'); // a full disk has done so already
  }

  rows(): Iterable<{ readonly id: RowKey; readonly row: string }> {
    const all: Statement = this.#database.prepare(`SELECT id, row FROM ${this.#table} ORDER BY id`);
    all.setReadBigInts(true);
    return all.iterate() as Iterable<{ readonly id: RowKey; readonly row: string }>;
  }

  count(): number {
    const found: unknown = this.#database.prepare(`SELECT count(*) AS rows FROM ${this.#table}`).get();
    return (found as { readonly rows: number }).rows;
  }

  apply(lines: readonly string[]): void {
    if (!this.#hasColumns) this.#addColumns(lines);
    this.#write(lines);
  }

  remove(first: RowKey, last: RowKey): void {
    this.#database.prepare(`DELETE FROM ${this.#table} WHERE id BETWEEN ? AND ?`).run(first, last);
  }

  writeEdition(edition: string, place: ProvedPlace): void {
    this.#database
      .prepare(`INSERT OR REPLACE INTO ${EDITIONS} (name, edition) VALUES (?, ?)`)
      .run(this.#tableName, edition);
    this.#isConfirmed = true; // as many keys as rows
    this.#writePlace(place);
    this.#next = place;
  }

  #inTransaction(action: () => void): void {
    const database = this.#database;
    database.exec('BEGIN IMMEDIATE');
    try {
      action();
      database.exec('COMMIT');
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK'); // a full disk has done so already
      if (error instanceof Error && 'errcode' in error) error.message = `${this.name}: ${error.message}`;
      throw error;
    }
  }

  #writePlace(next: ProvedPlace): void {
    this.#database
      .prepare(`INSERT OR REPLACE INTO ${PULLS} (name, url, place) VALUES (?, ?, ?)`)
      .run(this.#tableName, this.#url.href, JSON.stringify({ ...next, ended: this.#isConfirmed }));
  }

  /** Adds a virtual column for each field that the URL asks for, or else that the first rows have. */
  #addColumns(lines: readonly string[]): void {
    const rows = lines.filter((line) => !line.startsWith(REMOVAL_BEGINNING)).slice(0, SAMPLED_ROWS);
    if (rows.length === 0) return;
    const names =
      this.#url.searchParams.get('fields')?.split(',') ??
      rows.flatMap((row) => Object.keys(JSON.parse(row) as object).filter((field) => field !== '_id'));
    const known = new Set(OWN_COLUMNS);
    for (const field of names) {
      const folded = field.toLowerCase();
      if (known.has(folded) || !canBeColumn(field)) continue;
      if (known.size >= MOST_COLUMNS) break;
      known.add(folded);
      this.#database.exec(
        `ALTER TABLE ${this.#table} ADD COLUMN ${quotedName(field)} GENERATED ALWAYS AS (${columnValue(field)}) VIRTUAL`,
      );
    }
    this.#hasColumns = true;
  }

  #apply(lines: readonly string[]): void {
    this.#database.exec(tableText(this.#table));
    if (this.#isVoid) this.#database.exec(`DELETE FROM ${this.#table}`);
    if (!this.#hasColumns) this.#addColumns(lines);
    this.#write(lines);
  }

  #write(lines: readonly string[]): void {
    const database = this.#database;
    const table = this.#table;
    const put = database.prepare(`INSERT OR REPLACE INTO ${table} (id, row) VALUES (?, ?)`);
    const remove = database.prepare(`DELETE FROM ${table} WHERE id = ?`);
    for (const line of lines) {
      if (line.startsWith(REMOVAL_BEGINNING)) remove.run(keyOf(memberOf(line)));
      else put.run(keyOf(line), line);
    }
  }

  /** `rows`: all rows of the set, each once. Throws Refusal when two of them have one id. */
  async #compareIds(rows: AsyncIterable<Buffer>): Promise<void> {
    this.#database.exec(
      'DROP TABLE IF EXISTS temp.ids; CREATE TEMP TABLE ids (id PRIMARY KEY NOT NULL) WITHOUT ROWID',
    );
    const add = this.#database.prepare('INSERT OR IGNORE INTO temp.ids VALUES (?)');
    for await (const bytes of rows)
      for (const row of linesOf(bytes))
        if (add.run(keyOf(row)).changes === 0)
          throw new Refusal(
            `two rows have the id ${memberOf(row)}: their ids are of different kinds, which JSON cannot distinguish, so a copy would lose one of them`,
          );
    this.#database.exec('DROP TABLE temp.ids');
  }
}

function linesOf(bytes: Buffer): readonly string[] {
  return bytes.toString('utf8').split('\n').slice(0, -1);
}

function tableOf(url: URL): string {
  const name = url.pathname.split('/').at(-2) ?? '';
  return name === '' ? 'rows' : decodeURIComponent(name);
}

function tableText(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (id PRIMARY KEY NOT NULL, row TEXT NOT NULL) WITHOUT ROWID`;
}

/** The number of columns of a table. 0: there is none. */
function columnsIn(database: Database, table: string): number {
  return database.prepare(`SELECT name FROM pragma_table_xinfo(${quotedText(table)})`).all().length;
}
