import { MessageChannel } from 'node:worker_threads';
import { backup, DatabaseSync } from '../../../base/sqlite.ts';

type Database = InstanceType<typeof DatabaseSync>;
type Statement = ReturnType<Database['prepare']>;

/** A value of SQLite. Integers are numbers: none here is above 2^53. */
export type SqlValue = null | number | string | Uint8Array;
export type SqlRow = Readonly<Record<string, SqlValue>>;

interface ConnectionOptions {
  readonly readOnly?: boolean;
  /** How much of the file is mapped into memory for reads, in bytes. 0 where the file system does not allow it. */
  readonly mmapBytes?: number;
  /** How much of the rest it keeps in memory. */
  readonly cacheKibibytes?: number;
}

/** Statements of dropped tables stay prepared. Above this number all are prepared anew. */
const MOST_STATEMENTS = 2_000;
/** Result codes by their texts (sqlite3_errstr): errors of `all` have no other sign of the code in this binding. */
const CODES: ReadonlyMap<string, number> = new Map([
  ['database is locked', 5],
  ['database table is locked', 6],
  ['disk I/O error', 10],
  ['database disk image is malformed', 11],
  ['locking protocol', 15],
  ['file is not a database', 26],
]);
const COPIED_AT_ONCE = 1_000;
const CACHE_KIBIBYTES = 32 * 1024;

/**
 * Every call is synchronous and leaves nothing open, which would keep the write-ahead log from beginning anew. (But `begin`: the
 * calls behind it see one state.)
 */
export class Connection {
  readonly #db: Database;
  readonly #statements = new Map<string, Statement>();
  #dataVersion: unknown = null;

  /** Throws errors of SQLite: the file is damaged, or another process is in the way. */
  constructor(
    path: string,
    { readOnly = false, mmapBytes = 0, cacheKibibytes = CACHE_KIBIBYTES }: ConnectionOptions = {},
  ) {
    this.#db = new DatabaseSync(path, { readOnly });
    // Without cell_size_check: it looks at all cells of a page whenever a read comes to one, which doubles the time of a
    // walk in another order than that of the keys. Checksums, counters and the check in the background notice damage.
    try {
      this.#db.exec(
        `pragma busy_timeout=0; pragma cache_size=-${cacheKibibytes}; pragma mmap_size=${mmapBytes};
         pragma trusted_schema=off; pragma synchronous=normal;
         pragma wal_autocheckpoint=0; pragma journal_size_limit=${64 * 1024 * 1024}`,
      );
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  /** Whether a transaction is open. SQLite itself ends one when it cannot undo a part of it. */
  get isInTransaction(): boolean {
    return this.#db.isTransaction;
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  /** The first row of a query. Its text must not come from a request. */
  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return this.#statement(sql).get(...values) as SqlRow | undefined;
  }

  all(sql: string, ...values: SqlValue[]): readonly SqlRow[] {
    try {
      return this.#statement(sql).all(...values) as readonly SqlRow[];
    } catch (error) {
      throw withCode(error);
    }
  }

  /** Returns the number of rows that it changed. */
  run(sql: string, ...values: SqlValue[]): number {
    return this.#statement(sql).run(...values).changes;
  }

  /** Begins to see one state of the file: the present one. `undo` ends that. */
  begin(): void {
    this.run('begin');
    this.get('select 1 from sqlite_schema limit 1'); // the state is that of the first read
  }

  /** Runs queries that see one state of the file. */
  look<T>(queries: () => T): T {
    if (this.#db.isTransaction) return queries();
    this.run('begin');
    try {
      return queries();
    } finally {
      this.undo();
    }
  }

  /** Runs queries that write, all of them or none. */
  transaction<T>(queries: () => T): T {
    this.run('begin immediate');
    try {
      const result = queries();
      this.run('commit');
      return result;
    } finally {
      this.undo();
    }
  }

  /** Whether another connection may have written since the last call. */
  hasNews(): boolean {
    const before = this.#dataVersion;
    try {
      this.#dataVersion = this.get('pragma data_version')?.data_version;
      return this.#dataVersion !== before;
    } catch {
      return true; // the look that follows says why
    }
  }

  /** Undoes the transaction, unless SQLite has done that itself. */
  undo(): void {
    if (this.#db.isTransaction) this.run('rollback');
  }

  /**
   * Copies one state of the file to another file, while others write. Without a transaction around it SQLite would begin
   * anew after each write by another process. Rejects with what `onPages` throws.
   */
  async copyTo(path: string, onPages: (copied: number, pages: number) => void): Promise<void> {
    this.begin();
    try {
      await backup(this.#db, path, {
        rate: COPIED_AT_ONCE,
        progress: ({ totalPages: pages, remainingPages: left }) => onPages(pages - left, pages),
      });
    } finally {
      this.undo();
    }
  }

  close(): void {
    this.#statements.clear();
    if (this.#db.isOpen) this.#db.close();
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known) return known;
    if (this.#statements.size >= MOST_STATEMENTS) this.#statements.clear();
    const statement = this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

export function bytesIn(row: SqlRow | undefined, column: string): Uint8Array | null {
  const value = row?.[column];
  return value instanceof Uint8Array ? value : null;
}

const { port1: closedPort } = new MessageChannel();
closedPort.close();

/**
 * Frees the memory of a value now. V8 would free it when it collects garbage, and collect all the time while a stream reads
 * batches. Also, memory that is free again at once need not be cleared by the system first: a batch takes 400 instead of 500
 * microseconds. What is sent to a closed port is gone. (Node 22 has ArrayBuffer.prototype.transfer.)
 */
export function freeBytes({ buffer }: Uint8Array): void {
  closedPort.postMessage(null, [buffer as ArrayBuffer]);
}

/** The error of a query with its result code. */
export function withCode(error: unknown): unknown {
  if (!(error instanceof Error) || 'errcode' in error) return error;
  const errcode = CODES.get(error.message);
  return errcode === undefined ? error : Object.assign(error, { errcode });
}
