import { KEY_EXISTS } from '../bookmark.ts';
import type { Count, Load, LoadResult, OnConflict, Refuse } from '../store.ts';
import { compareKeys, type Key } from '../keys.ts';
import { storedRow } from './checked-rows.ts';
import { withUnusable } from './change-set.ts';
import type { Core } from './core.ts';
import { keyRow } from './keyed.ts';
import { columnOf, indexSql, rowsTable, tablesSql } from './layout.ts';
import { LARGE_BYTES, type SetRecord, type SetShape } from './sets.ts';

/** The most rows and bytes in one transaction: about 0.1 s. */
const TRANSACTION_ROWS = 10_000;
const TRANSACTION_BYTES = 8 * 1024 * 1024;

/**
 * The lock of a process that loads a set: that of SQLite on an empty file of its own. The system drops it when the process
 * ends, however that is, so no one has to guess by process ids and clocks, which containers do not share.
 */
export interface LoadLock {
  release(): Promise<void>;
}

export interface LoadOptions {
  /** The set, marked as one that is loaded under the lock, with new and empty tables that have no indexes. */
  readonly set: SetRecord;
  readonly lock: LoadLock;
  readonly onConflict: OnConflict;
  readonly refuse: Refuse;
  readonly removed: number;
}

/** A row that waits for its transaction: where it came in the source, and the values of its columns. */
interface Waiting {
  readonly at: number;
  readonly values: (Uint8Array | null)[];
}

/**
 * Fills the new tables of a set. Rows are added as they come. When they did not come in order of their keys, they are
 * sorted into further tables in the end. The indexes are made last. The set is marked meanwhile, so no one sees any of
 * it before the last transaction.
 */
export class SetLoad implements Load {
  readonly removed: Count;
  readonly #core: Core;
  readonly #refusalOf: SetShape['refusalOf'];
  readonly #options: LoadOptions;
  #set: SetRecord;
  #rows: Waiting[] = [];
  #bytes = 0;
  #lastKey: Key | null = null;
  #isInOrder = true;
  #hasLargeRows = false;
  #writing: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | null = null;
  #written = 0;

  constructor(core: Core, { refusalOf }: SetShape, options: LoadOptions) {
    [this.#core, this.#refusalOf, this.#options] = [core, refusalOf, options];
    this.#set = options.set;
    this.removed = { rows: options.removed, is: 'exact' };
  }

  add(document: Uint8Array, at: number): void | Promise<void> {
    const row = this.#refusalOf(document) ?? keyRow(document, this.#set.indexes);
    if (typeof row === 'string') {
      this.#options.refuse(at, row);
      return;
    }
    if (row.unusable.length > 0) this.#set = withUnusable(this.#set, row.unusable);
    this.#isInOrder &&= this.#lastKey === null || compareKeys(this.#lastKey, row.key) < 0;
    this.#lastKey = row.key;
    this.#hasLargeRows ||= document.length > LARGE_BYTES;
    this.#rows.push({ at, values: [row.key, storedRow(document), ...row.entries] });
    this.#bytes += document.length;
    if (this.#rows.length >= TRANSACTION_ROWS || this.#bytes >= TRANSACTION_BYTES) return this.#append();
  }

  async finish(): Promise<LoadResult> {
    await this.#append();
    await this.#writing;
    this.#throwFailure();
    const removed = this.#isInOrder ? [] : await this.#sort();
    const set = this.#set;
    for (const column of ['k', ...set.indexes.map(({ number }) => columnOf(number))])
      await this.#longStatement(indexSql(set.number, column));
    const { onConflict, refuse, lock } = this.#options;
    await this.#core.writes.run(() => this.#publish(set, this.#written - removed.length));
    await lock.release();
    if (onConflict === 'fail') for (const at of removed) refuse(at, KEY_EXISTS);
    return onConflict === 'replace'
      ? { written: this.#written, skipped: 0 }
      : { written: this.#written - removed.length, skipped: onConflict === 'skip' ? removed.length : 0 };
  }

  async abandon(): Promise<void> {
    const { sets, writes } = this.#core;
    await this.#writing;
    this.#failure = null;
    try {
      await writes.run(() => sets.empty(sets.get(this.#set.name)));
    } finally {
      await this.#options.lock.release(); // else the next reader does it
    }
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
    const { connection, writes } = this.#core;
    const write = () => {
      for (const { at, values } of rows) connection.run(sql, at + 1, ...values);
    };
    // The next call throws a failure.
    this.#writing = writes.run(write).catch((error: unknown) => {
      this.#failure ??= { error };
    });
    this.#written += rows.length;
  }

  /**
   * Sorts rows into new tables: of each id the last for `replace`, else the first. Returns the places of the others.
   */
  async #sort(): Promise<readonly number[]> {
    const { connection, sets, writes } = this.#core;
    const from = rowsTable(this.#set.number);
    const columns = ['k', 'd', ...this.#set.indexes.map((index) => columnOf(index.number))].join();
    const number = await writes.run(() => {
      const next = sets.takeNumber();
      connection.exec(tablesSql(next, this.#set.indexes));
      const { loading } = this.#set;
      if (loading) sets.put({ ...sets.get(this.#set.name), loading: { ...loading, sorted: next } });
      return next;
    });
    const [kept, direction] = this.#options.onConflict === 'replace' ? ['max(n)', 'desc'] : ['min(n)', 'asc'];
    // The other columns of a group are those of the row that min or max finds (sqlite.org/lang_select.html#bareagg).
    await this.#longStatement(
      `insert into ${rowsTable(number)}(${columns}) select ${columns} from (select ${columns}, ${kept} from ${from} group by k)`,
    );
    this.#set = { ...this.#set, number };
    const ranked = `select n, row_number() over (partition by k order by n ${direction}) place from ${from}`;
    const counted = `select count(*) rows from ${rowsTable(number)}`;
    const others = await writes.run(() =>
      connection.get(counted)?.rows === this.#written
        ? []
        : connection.all(`select n from (${ranked}) where place > 1 order by n`),
    );
    return others.map(({ n }) => Number(n) - 1);
  }

  /** In a transaction: ends the load. */
  #publish(set: SetRecord, rows: number): void {
    const { sets } = this.#core;
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

  /** Runs a statement that takes long, when the rows are written. */
  async #longStatement(sql: string): Promise<void> {
    await this.#writing;
    this.#throwFailure();
    const { writes, maintenance } = this.#core;
    await writes.alone(() => maintenance.run(sql));
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
