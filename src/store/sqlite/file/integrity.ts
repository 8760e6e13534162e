import type { SqlRow, SqlValue } from './connection.ts';
import { compareKeys, LOWEST, type Key } from '../../values/keys.ts';
import { isDamage } from './errors.ts';
import { columnsOf, indexName, logTable, rowsTable } from './layout.ts';
import { reasonOf } from '../../../base/error-reason.ts';
import type { Looks } from './looks.ts';
import { isWhole, type CollectionRecord, type Collections } from './collections.ts';

/** Rows of one statement: it takes less than a second, unless the disk is slow. */
const ROWS_AT_ONCE = 50_000;

interface Parts {
  readonly looks: Looks;
  readonly collections: Collections;
  /** Runs a query in a thread, outside of a transaction. */
  readonly query: (sql: string, ...values: SqlValue[]) => Promise<readonly SqlRow[]>;
  readonly signal: AbortSignal;
  readonly rowsAtOnce?: number;
}

/**
 * Looks for damage of pages and indexes that reads do not notice: they would leave out rows, or give others. Each statement
 * sees a state of its own and ends soon, because the write-ahead log cannot begin anew meanwhile. Checksums of rows are left
 * to reads.
 */
export class IntegrityCheck {
  readonly #parts: Parts;
  readonly #rowsAtOnce: number;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#rowsAtOnce = parts.rowsAtOnce ?? ROWS_AT_ONCE;
  }

  /** The first fault as a sentence, or null. Rejects with the signal's reason. */
  async fault(): Promise<string | null> {
    const { looks, collections } = this.#parts;
    try {
      for (const table of ['sqlite_schema', 'meta', 'epochs', 'sets']) {
        const fault = await this.#faultOfPages(table);
        if (fault !== null) return fault;
      }
      for (const name of await looks.soon(() => collections.names())) {
        const fault = await this.#faultOfSet(name);
        if (fault !== null) return fault;
      }
      return null;
    } catch (error) {
      if (isDamage(error) || (error instanceof Error && isDamage(error.cause))) return reasonOf(error);
      throw error;
    }
  }

  async #ask(sql: string, ...values: SqlValue[]): Promise<SqlRow | undefined> {
    this.#parts.signal.throwIfAborted();
    const [first] = await this.#parts.query(sql, ...values);
    return first;
  }

  async #faultOfPages(table: string): Promise<string | null> {
    const { integrity_check: line } = (await this.#ask(`pragma integrity_check(${table})`)) ?? {};
    return line === 'ok' ? null : String(line);
  }

  /** What is found in a collection counts when its tables and indexes are the same before and after. */
  async #faultOfSet(name: string): Promise<string | null> {
    const { looks, collections } = this.#parts;
    for (;;) {
      const collection = await looks.soon(() => collections.find(name));
      const fault = collection && (await this.#faultOfTables(collection).catch(damageOf));
      if (!fault) return null;
      if ((await looks.soon(() => collections.find(name))) === collection)
        return `${collection.label}: ${fault}`;
    }
  }

  async #faultOfTables(collection: CollectionRecord): Promise<string | null> {
    const columns = ['k', ...columnsOf(collection.indexes.filter(isWhole))];
    const indexes = columns.map((column) => ({ column, name: indexName(collection.number, column) }));
    return (
      (await this.#faultOfCounts(collection, indexes)) ??
      (await this.#faultOfTable(rowsTable(collection.number), indexes)) ??
      (await this.#faultOfTable(logTable(collection.number), []))
    );
  }

  /** Each index has as many entries as the counter says there are rows. */
  async #faultOfCounts(
    { name, number }: CollectionRecord,
    indexes: readonly TableIndex[],
  ): Promise<string | null> {
    for (const { column, name: index } of indexes) {
      const found = await this.#ask(
        `select (select count(${column}) from ${rowsTable(number)} indexed by ${index} where ${column} > x'') n,` +
          ` rows from sets where name = ?`,
        name,
      );
      if (found && found.n !== found.rows)
        return `the index ${index} has ${Number(found.n)} entries, and there are ${Number(found.rows)} rows`;
    }
    return null;
  }

  /**
   * A table of few rows as SQLite checks it. Of another one, some rows at a time, each row is looked up in each index by its
   * key there, and each entry of the first index has its row.
   */
  async #faultOfTable(table: string, indexes: readonly TableIndex[]): Promise<string | null> {
    const few = await this.#ask(nextSql(table), -1, this.#rowsAtOnce);
    if (Number(few?.rows) < this.#rowsAtOnce) return this.#faultOfPages(table);
    const isMissing = indexes.map(
      ({ column, name }) =>
        `not exists (select 1 from ${table} a indexed by ${name} where a.${column} = r.${column} and a.n = r.n)`,
    );
    const lost = `select 1 from ${table} r not indexed where n > ? and n <= ? and (${isMissing.join(' or ')}) limit 1`;
    const fault = await this.#faultOfPieces(nextSql(table), -1, indexes.length > 0 ? lost : null);
    const [first] = indexes;
    if (fault !== null || !first) return fault && `rows of ${table} ${fault}`;
    const { column, name } = first;
    const stray =
      `select 1 from ${table} r indexed by ${name} where ${column} > ? and ${column} <= ? and not exists` +
      ` (select 1 from ${table} a not indexed where a.n = r.n and a.${column} = r.${column}) limit 1`;
    const entries = await this.#faultOfPieces(nextSql(table, first), LOWEST, stray);
    return entries && `entries of ${name} ${entries}`;
  }

  /** What is wrong in a piece, as the end of a sentence. `next`: its end, `wrong`: a row when something is wrong up to there. */
  async #faultOfPieces(next: string, start: number | Key, wrong: string | null): Promise<string | null> {
    for (let from = start; ;) {
      const to = (await this.#ask(next, from, this.#rowsAtOnce))?.last ?? null;
      if (to === null) return null;
      if (!isBehind(to, from)) return 'are not in their order';
      if (wrong !== null && (await this.#ask(wrong, from, to))) return 'are not found by their keys';
      from = to;
    }
  }
}

interface TableIndex {
  readonly column: string;
  readonly name: string;
}

/** The query of the last one, `last`, of some rows behind another one, in the order of an index or of their numbers; how many they are, `rows`. */
function nextSql(table: string, index?: TableIndex): string {
  const [column, by] = index ? [index.column, `indexed by ${index.name}`] : ['rowid', 'not indexed'];
  const some = `select ${column} c from ${table} ${by} where ${column} > ? order by ${column} limit ?`;
  return `select max(c) last, count(*) rows from (${some})`;
}

function isBehind(to: SqlValue, from: number | Key): to is number | Key {
  if (to instanceof Uint8Array) return typeof from !== 'number' && compareKeys(to, from) > 0;
  return typeof to === 'number' && typeof from === 'number' && to > from;
}

function damageOf(error: unknown): string {
  if (isDamage(error)) return reasonOf(error);
  throw error;
}
