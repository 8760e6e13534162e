import { DatabaseSync } from '../base/sqlite.ts';
import { MOST_COLUMNS, SAMPLED_ROWS } from '../rows/csv-cell.ts';
import { HeldLines, type Copy } from './copy.ts';
import { REMOVAL_BEGINNING } from './lines.ts';
import { BEGINNING, type ProvedPlace } from './proof.ts';
import { Refusal } from './retry.ts';
import { reasonOf } from '../base/error-reason.ts';

type Database = InstanceType<typeof DatabaseSync>;

/** The table that says of each other table what it is a copy of, and how far. */
const PULLS = 'sluice_pulls';
/** How long to wait for another program that writes the file. Milliseconds. */
const BUSY_MS = 10_000;
/** Columns that the table has itself. SQLite does not distinguish cases. */
const OWN_COLUMNS = new Set(['id', 'row', 'rowid', 'oid', '_rowid_']);
/** What SQLite cuts a text at, and what UTF-8 does not have. */
const NO_TEXT = /[\0\p{Cs}]/u;
/** Texts, and what separates values. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[,[\]{}]/g;

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
  if (restart) {
    database.exec(`DROP TABLE IF EXISTS ${quotedName(table)}`);
    database.prepare(`DELETE FROM ${PULLS} WHERE name = ?`).run(table);
  }
  const known = database.prepare(`SELECT url, place FROM ${PULLS} WHERE name = ?`).get(table) as
    { readonly url: string; readonly place: string } | undefined;
  if (known && known.url !== url.href)
    throw new Refusal(`the table ${table} of ${path} is a copy of ${known.url}: --restart replaces it`);
  if (!known && columnsIn(database, table) > 0)
    throw new Refusal(`${path} has a table ${table} that is not a copy: --restart replaces it`);
  return known ? (JSON.parse(known.place) as ProvedPlace) : BEGINNING;
}

class SqliteCopy implements Copy {
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
  /** Whether the rows go with the next proof. */
  #isVoid = false;

  constructor(database: Database, path: string, url: URL, from: ProvedPlace) {
    this.#database = database;
    this.#url = url;
    this.#tableName = tableOf(url);
    this.#table = quotedName(this.#tableName);
    this.name = `${path}, table ${this.#tableName}`;
    this.#place = { ...from, ended: false };
    this.#isConfirmed = from.ended;
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
    const { keys } = this.#database.prepare(`SELECT count(*) AS keys FROM ${this.#table}`).get() as {
      readonly keys: number;
    };
    if (keys < this.#place.rows) await this.#compareIds(rows());
    this.#isConfirmed = true;
    this.#inTransaction(() => this.#writePlace(this.#place));
  }

  close(): void {
    this.#database.close();
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
    const database = this.#database;
    const table = this.#table;
    database.exec(
      `CREATE TABLE IF NOT EXISTS ${table} (id PRIMARY KEY NOT NULL, row TEXT NOT NULL) WITHOUT ROWID`,
    );
    if (this.#isVoid) database.exec(`DELETE FROM ${table}`);
    if (!this.#hasColumns) this.#addColumns(lines);
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
  return decodeURIComponent(url.pathname.split('/').at(-2) ?? 'rows');
}

/** The number of columns of a table. 0: there is none. */
function columnsIn(database: Database, table: string): number {
  return database.prepare(`SELECT name FROM pragma_table_xinfo(${quotedText(table)})`).all().length;
}

/** The JSON of the first member (`id`, `_id`, `removed`) of an object without blanks. Throws SyntaxError when it is cut. */
function memberOf(object: string): string {
  const from = object.indexOf(':') + 1;
  let depth = 0;
  for (const { 0: token, index } of object.slice(from).matchAll(TOKENS)) {
    if (depth === 0 && (token === ',' || token === '}')) return object.slice(from, from + index);
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
  }
  throw new SyntaxError('a line ends too early');
}

/**
 * The id of a row as SQLite keeps it: text as text, a number as a number where that keeps all digits, and anything else
 * as a blob with its JSON. So two ids are equal only if their JSON is. Text that SQLite cuts at a NUL, or that UTF-8 does
 * not have, is such a blob, too.
 */
function keyOf(row: string): string | bigint | number | Buffer {
  const json = memberOf(row);
  const text = json.startsWith('"') ? (JSON.parse(json) as string) : null;
  if (text !== null) return NO_TEXT.test(text) ? Buffer.from(json) : text;
  if (/^-?[1-9]\d{0,17}$|^0$/.test(json)) return BigInt(json);
  if (/^-?\d/.test(json) && String(Number(json)) === json && !Number.isInteger(Number(json)))
    return Number(json);
  return Buffer.from(json);
}

/** Whether a field can have a column. SQLite compares names in JSON with their escapes in some versions only. */
function canBeColumn(name: string): boolean {
  return name !== '' && JSON.stringify(name) === `"${name}"`;
}

/** The value under a field's name, and, with dots in it, under the names of its path, which may lead to an array. */
function columnValue(name: string): string {
  const names = name.split('.');
  const arrays = names.slice(1).map((_, n) => {
    const path = pathOf(names.slice(0, n + 1));
    return `CASE json_type(row, ${path}) WHEN 'array' THEN json_extract(row, ${path}) END`;
  });
  const values = [[name], ...(names.length > 1 ? [names] : [])].map(
    (path) => `json_extract(row, ${pathOf(path)})`,
  );
  const all = [...values, ...arrays];
  return all.length === 1 ? all.join('') : `coalesce(${all.join(', ')})`;
}

function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function quotedText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

function pathOf(names: readonly string[]): string {
  return quotedText(`$${names.map((name) => `."${name}"`).join('')}`);
}
