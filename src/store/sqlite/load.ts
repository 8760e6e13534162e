import { KEY_EXISTS } from '../bookmark.ts';
import type { Count, Load, LoadResult, OnConflict, Refuse } from '../store.ts';
import { compareKeys, type Key } from '../keys.ts';
import { storedRow } from './checked-rows.ts';
import { withUnusable } from './change-set.ts';
import { keyRow } from './keyed.ts';
import { columnOf, indexSql, rowsTable, tablesSql } from './layout.ts';
import { RENEW_MS } from './load-mark.ts';
import type { SetParts } from './set-parts.ts';
import { NEW, type SetRecord } from './sets.ts';

/** The most rows and bytes in one transaction: about 0.1 s. */
const TRANSACTION_ROWS = 10_000;
const TRANSACTION_BYTES = 8 * 1024 * 1024;

export interface LoadOptions {
  /** The set under its mark, with new and empty tables that have no indexes. */
  readonly set: SetRecord;
  readonly onConflict: OnConflict;
  readonly refuse: Refuse;
  /** See Load. */
  readonly removed: number;
}

/** A row that waits for its transaction: where it came in the source, and the values of its columns. */
interface Waiting {
  readonly at: number;
  readonly values: (Uint8Array | null)[];
}

/**
 * Fills the new tables of a set. Rows are added as they come. When they did not come in order of their keys, they are
 * sorted into further tables in the end. The indexes are made last. All this happens under the mark of the set, so no one
 * sees any of it before the last transaction.
 */
export class SetLoad implements Load {
  readonly removed: Count;
  readonly #options: SetParts & LoadOptions;
  readonly #renewal: NodeJS.Timeout;
  #set: SetRecord;
  #rows: Waiting[] = [];
  #bytes = 0;
  #lastKey: Key | null = null;
  #isInOrder = true;
  #hasLargeRows = false;
  #writing: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | null = null;
  #written = 0;

  constructor(parts: SetParts, options: LoadOptions) {
    this.#options = { ...parts, ...options };
    this.#set = options.set;
    this.removed = { rows: options.removed, is: 'exact' };
    // A process with a slow source must not look as if it had ended.
    this.#renewal = setInterval(() => this.#start(() => undefined), RENEW_MS);
    this.#renewal.unref();
  }

  /** See Load. */
  add(document: Uint8Array, at: number): void | Promise<void> {
    const { refusalOf, refuse } = this.#options;
    const row = refusalOf(document) ?? keyRow(document, this.#set.indexes);
    if (typeof row === 'string') {
      refuse(at, row);
      return;
    }
    if (row.unusable.length > 0) this.#set = withUnusable(this.#set, row.unusable);
    this.#isInOrder &&= this.#lastKey === null || compareKeys(this.#lastKey, row.key) < 0;
    this.#lastKey = row.key;
    this.#hasLargeRows ||= document.length > 64 * 1024;
    this.#rows.push({ at, values: [row.key, storedRow(document), ...row.entries] });
    this.#bytes += document.length;
    if (this.#rows.length >= TRANSACTION_ROWS || this.#bytes >= TRANSACTION_BYTES) return this.#append();
  }

  /** See Load. */
  async finish(): Promise<LoadResult> {
    await this.#append();
    await this.#writing;
    this.#throwFailure();
    const removed = this.#isInOrder ? [] : await this.#sort();
    const set = this.#set;
    for (const column of ['k', ...set.indexes.map(({ number }) => columnOf(number))])
      await this.#longStatement(indexSql(set.number, column));
    const { onConflict, refuse } = this.#options;
    clearInterval(this.#renewal);
    await this.#inTransaction(() => this.#publish(set, this.#written - removed.length));
    if (onConflict === 'fail') for (const at of removed) refuse(at, KEY_EXISTS);
    return onConflict === 'replace'
      ? { written: this.#written, skipped: 0 }
      : { written: this.#written - removed.length, skipped: onConflict === 'skip' ? removed.length : 0 };
  }

  /** See Load. */
  async abandon(): Promise<void> {
    const { sets, writes } = this.#options;
    clearInterval(this.#renewal);
    await this.#writing;
    this.#failure = null;
    await writes.run(() => {
      this.#assertMine();
      emptySet(this.#options, sets.get(this.#set.name));
    });
  }

  /** Starts to write the rows that wait. Resolves when those before them are written, so that reading goes on beside. */
  async #append(): Promise<void> {
    const rows = this.#rows;
    [this.#rows, this.#bytes] = [[], 0];
    await this.#writing;
    this.#throwFailure();
    const { number, indexes } = this.#set;
    const names = ['n', 'k', 'd', ...indexes.map((index) => columnOf(index.number))];
    const sql = `insert into ${rowsTable(number)}(${names.join()}) values (${names.map(() => '?').join()})`;
    this.#start(() => {
      for (const { at, values } of rows) this.#options.connection.run(sql, at + 1, ...values);
    });
    this.#written += rows.length;
  }

  /**
   * Sorts the rows into new tables, of each id only one: the last one for `replace`, else the first one. Returns where the
   * others came in the source.
   */
  async #sort(): Promise<readonly number[]> {
    const { connection, sets, onConflict } = this.#options;
    const from = rowsTable(this.#set.number);
    const columns = ['k', 'd', ...this.#set.indexes.map((index) => columnOf(index.number))].join();
    const number = await this.#inTransaction(() => {
      const next = sets.takeNumber();
      connection.exec(tablesSql(next, this.#set.indexes));
      const { loading } = this.#set;
      if (loading) sets.put({ ...sets.get(this.#set.name), loading: { ...loading, sorted: next } });
      return next;
    });
    const [kept, direction] = onConflict === 'replace' ? ['max(n)', 'desc'] : ['min(n)', 'asc'];
    // The other columns of a group are those of the row that min or max finds (sqlite.org/lang_select.html#bareagg).
    await this.#longStatement(
      `insert into ${rowsTable(number)}(${columns}) select ${columns} from (select ${columns}, ${kept} from ${from} group by k);`,
    );
    this.#set = { ...this.#set, number };
    const ranked = `select n, row_number() over (partition by k order by n ${direction}) place from ${from}`;
    const counted = `select count(*) rows from ${rowsTable(number)}`;
    const others = await this.#inTransaction(() =>
      connection.get(counted)?.rows === this.#written
        ? []
        : connection.all(`select n from (${ranked}) where place > 1 order by n`),
    );
    return others.map(({ n }) => Number(n) - 1);
  }

  /** In a transaction: ends the load. */
  #publish(set: SetRecord, rows: number): void {
    const { sets } = this.#options;
    const current = sets.get(set.name);
    const ended = {
      ...current,
      indexes: set.indexes,
      isInOrder: true,
      hasLargeRows: this.#hasLargeRows || undefined,
      loading: undefined,
    };
    if (set.number === current.number) sets.put(ended);
    else sets.renumber(ended, set.number);
    sets.addRows(set.name, rows);
  }

  /** Runs a statement that takes long, and renews the mark in its transaction: no one else can write meanwhile. */
  async #longStatement(sql: string): Promise<void> {
    await this.#writing;
    this.#throwFailure();
    const { writes, maintenance } = this.#options;
    const renew = `update sets set alive = cast(unixepoch('subsec') * 1000 as integer) where name = '${this.#set.name.replaceAll("'", "''")}'`;
    await writes.alone(() => maintenance.run(`begin immediate; ${sql} ${renew}; commit`));
  }

  /** Starts a transaction under the mark. A failure is thrown by the next call. */
  #start(action: () => void): void {
    this.#writing = this.#inTransaction(action).catch((error: unknown) => {
      this.#failure ??= { error };
    });
  }

  #inTransaction<T>(action: () => T): Promise<T> {
    const { writes, connection } = this.#options;
    return writes.run(() => {
      this.#assertMine();
      connection.run('update sets set alive = ? where name = ?', Date.now(), this.#set.name);
      return action();
    });
  }

  #assertMine(): void {
    const { sets } = this.#options;
    if (sets.get(this.#set.name).loading?.token === this.#set.loading?.token) return;
    throw new Error(
      'another process took this load for ended, because it was silent for too long, and undid it',
    );
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}

/** In a transaction: removes all rows of a set, and ends a load of it. The set gets new tables. Returns it. */
export function emptySet({ sets }: Pick<SetParts, 'sets'>, set: SetRecord): SetRecord {
  const indexes = set.indexes.map(({ number, paths }) => ({ number, paths, builtTo: null }));
  const emptied = sets.renumber({ ...set, ...NEW, indexes }, sets.takeNumber());
  sets.makeTables(emptied);
  return emptied;
}
