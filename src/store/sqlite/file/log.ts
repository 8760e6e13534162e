import { bookmarkOf, KEY, textOf, type Bookmark } from '../../bookmark.ts';
import { isUnseen, type ScopePredicate } from '../../scope/predicate.ts';
import { DamagedRowError, documentIn, storedRow } from './checked-rows.ts';
import { bytesIn, type Connection, type SqlRow } from './connection.ts';
import { logTable } from './layout.ts';
import type { CollectionRecord, Collections } from './collections.ts';

/** Changes that one look reads: about 5 ms. */
const READ_AT_ONCE = 10_000;
/** Changes that one transaction removes. It writes fewer, except for the largest imports. */
const PRUNED_AT_ONCE = 20_000;
/**
 * The most changes that the log of a collection has. Where twice the number of its rows is more, that many: a reader that is
 * further behind has less to read when it begins anew.
 */
const MOST_CHANGES = 1_000_000;
/** Transactions begin to remove changes when this part of the limits is exceeded, so most of them remove none. */
const SPARE = 1 / 1_024;
/** Readers that see a part of a collection renew their wish after this part of the time for which changes are kept. */
const RENEWED_AFTER = 1 / 4;

export interface LogOptions {
  readonly ttlMs: number;
  /** A clock in milliseconds since 1970. */
  readonly wallClock: () => number;
  /** The most changes in the log of a small collection, 1,000,000 by default. */
  readonly mostChanges?: number | undefined;
}

/** What the log has in place of a row after a change that it does not keep. A removal has nothing there. */
const IS_THERE = Uint8Array.of(1);

/** The numbers of the last change, and of the last one that the log no longer has; the number of rows. */
interface LogState {
  readonly last: number;
  readonly floor: number;
  readonly rows: number;
}

/** The changes of one transaction, which follow the last change until now. */
export interface ChangeNotes {
  readonly sql: string;
  readonly at: number;
  /** Whether readers of a scope need rows as they were. */
  readonly keepsRows: boolean;
  last: number;
}

interface LoggedIds {
  /** Each once. */
  readonly ids: readonly Bookmark[];
  /** The ids (see `textOf`) of rows that matched before one of the changes. */
  readonly matchedBefore: ReadonlySet<string>;
  readonly next: number;
}

/**
 * The logs of changed rows. A change is a row of the collection's log: its number, the id of the row and the time; where
 * readers see a part of the collection, also the row before and after; each with its checksum. All calls are made in a look or a transaction.
 */
export class ChangeLog {
  readonly #connection: Connection;
  readonly #collections: Collections;
  readonly #options: LogOptions;
  /** Of the ids that `read` gave, those whose row was there behind their last change: its number, and that of the collection's tables. */
  readonly #seenThere = new WeakMap<Bookmark, { readonly seq: number; readonly number: number }>();

  constructor(connection: Connection, collections: Collections, options: LogOptions) {
    this.#connection = connection;
    this.#collections = collections;
    this.#options = options;
  }

  state({ name, number }: CollectionRecord): LogState {
    const table = logTable(number);
    // A search finds a change behind the last one where a page of the log is not in its place.
    const sql =
      `select floor, rows, last, (select min(rowid) from ${table} where rowid > last) beyond` +
      ` from sets, (select max(rowid) last from ${table}) where name = ?`;
    const found = this.#connection.get(sql, name);
    if (typeof found?.beyond === 'number')
      throw new DamagedRowError('the log goes on behind its last change');
    const floor = Number(found?.floor ?? 0);
    return { last: Math.max(floor, Number(found?.last ?? 0)), floor, rows: Number(found?.rows ?? 0) };
  }

  /**
   * The time of a collection: that of the clock, but never before what was written. Else a clock that was ahead and comes back
   * would take changes that were noted without their rows for ones that have them.
   */
  #timeOf({ number, before }: CollectionRecord): number {
    const table = logTable(number);
    const last = this.#connection.get(
      `select at from ${table} where rowid = (select max(rowid) from ${table})`,
    );
    return Math.max(this.#options.wallClock(), Number(last?.at ?? 0), before?.usedAt ?? 0);
  }

  /** Begins to note changes of a collection in a transaction. */
  begin(collection: CollectionRecord): ChangeNotes {
    const at = this.#timeOf(collection);
    const keepsRows = collection.before !== undefined && at - collection.before.usedAt <= this.#options.ttlMs;
    const sql = `insert into ${logTable(collection.number)} values (?, ?, ?, ?, ?)`;
    return { sql, at, keepsRows, last: this.state(collection).last };
  }

  /** Notes a row before and after its change. Null: there is none. */
  note(notes: ChangeNotes, before: Uint8Array | null, after: Uint8Array | null): void {
    const idBefore = before && idOf(before);
    const idAfter = after && idOf(after);
    if (idBefore && idAfter && Buffer.compare(idBefore, idAfter) !== 0) {
      // The _id is of another type: 7 and 7.0 are one row.
      this.#insert(notes, idBefore, before, null);
      this.#insert(notes, idAfter, null, after);
      return;
    }
    const id = idAfter ?? idBefore;
    if (id) this.#insert(notes, id, before, after);
  }

  /** Whether the log has to be asked to keep rows before their changes. */
  isWishDue(collection: CollectionRecord): boolean {
    return (
      !collection.before ||
      this.#timeOf(collection) - collection.before.usedAt > this.#options.ttlMs * RENEWED_AFTER
    );
  }

  /** In a transaction: from now on the log has rows as they were before their changes. */
  keepRows(collection: CollectionRecord): void {
    const usedAt = this.#timeOf(collection);
    const isKept = collection.before && usedAt - collection.before.usedAt <= this.#options.ttlMs;
    const since = isKept ? collection.before.since : this.state(collection).last;
    this.#collections.put({ ...collection, before: { since, usedAt } });
  }

  isPrunable(collection: CollectionRecord): boolean {
    return this.#prunableTo(collection) !== null;
  }

  /** In a transaction: removes the oldest changes that are not to be kept. Returns whether there were any. */
  prune(collection: CollectionRecord): boolean {
    const to = this.#prunableTo(collection);
    if (to === null) return false;
    this.#connection.run(`delete from ${logTable(collection.number)} where rowid <= ?`, to);
    this.#connection.run('update sets set floor = ? where name = ?', to, collection.name);
    return true;
  }

  /** At most `most` ids that changed after a number, as the readers of a scope see it. Reads the log up to `next`. */
  read(collection: CollectionRecord, after: number, most: number, scope: ScopePredicate | null): LoggedIds {
    const columns = `rowid seq, id, a is not null there${scope ? ', b, a' : ''}`;
    // An id may be there several times, and readers of a scope may not see most of the changes.
    const limit = scope ? READ_AT_ONCE : Math.min(2 * most, READ_AT_ONCE);
    const changes = this.#connection.all(
      `select ${columns} from ${logTable(collection.number)} where rowid > ? order by rowid limit ?`,
      after,
      limit,
    );
    const found = new Map<string, Bookmark>();
    const matchedBefore = new Set<string>();
    let next = after;
    const page = (): LoggedIds => ({ ids: [...found.values()], matchedBefore, next });
    for (const change of changes) {
      const id = storedIn(change, 'id') as Bookmark | null;
      if (id === null || Number(change.seq) !== next + 1)
        throw new DamagedRowError('a change is missing in the log');
      const name = textOf(id);
      const before = storedIn(change, 'b');
      const now = storedIn(change, 'a');
      if (!scope || !before || !now || !isUnseen(before, now, scope.fields)) {
        if (found.size >= most && !found.has(name)) return page();
        found.set(name, id);
        if (change.there === 1)
          this.#seenThere.set(id, { seq: Number(change.seq), number: collection.number });
        if (scope && before && scope.matches(before)) matchedBefore.add(name);
      }
      next = Number(change.seq);
    }
    if (changes.length < limit && next !== this.state(collection).last)
      throw new DamagedRowError('the log ends before its last change');
    return page();
  }

  /**
   * Throws DamagedRowError when a row that is not found should be there: `read` gave its id, and its last change, then and
   * until now, is not its removal. (Of changes that version 0.3 noted this is not known.)
   */
  assertRemoved(collection: CollectionRecord, id: Bookmark): void {
    const seen = this.#seenThere.get(id);
    if (seen?.number !== collection.number || seen.seq < this.state(collection).floor) return;
    const last = this.#connection.get(
      `select a is not null there from ${logTable(collection.number)} where rowid > ? and id = ? order by rowid desc limit 1`,
      ...[seen.seq, storedRow(id)],
    );
    if (last?.there !== 0)
      throw new DamagedRowError(`a row of ${collection.label} is not found, and nothing has removed it`);
  }

  #insert(notes: ChangeNotes, id: Bookmark, before: Uint8Array | null, after: Uint8Array | null): void {
    const rowBefore = notes.keepsRows && before ? storedRow(before) : null;
    // Without the row before, that after it is not needed.
    const rowAfter = rowBefore && after ? storedRow(after) : after && IS_THERE;
    this.#connection.run(notes.sql, ++notes.last, storedRow(id), notes.at, rowBefore, rowAfter);
  }

  /** The number up to which changes are not to be kept. Null: there are none. */
  #prunableTo(collection: CollectionRecord): number | null {
    const { ttlMs, mostChanges = MOST_CHANGES } = this.#options;
    const { last, floor, rows } = this.state(collection);
    const table = logTable(collection.number);
    const first = this.#connection.get(`select at from ${table} order by rowid limit 1`);
    if (!first) return null;
    const most = Math.max(mostChanges, last - floor > mostChanges ? 2 * rows : 0);
    let to = last - floor > most * (1 + SPARE) ? last - most : floor;
    const now = this.#timeOf(collection);
    if (now - Number(first.at) > ttlMs * (1 + SPARE)) {
      const old = this.#connection.get(
        `select max(seq) seq from (select rowid seq, at from ${table} order by rowid limit ${PRUNED_AT_ONCE}) where at < ?`,
        now - ttlMs,
      );
      to = Math.max(to, Number(old?.seq ?? 0));
    }
    // A load adds what came since it began.
    const kept = Math.min(...(collection.imports ?? []).map(({ side }) => side?.after ?? Infinity));
    to = Math.min(to, floor + PRUNED_AT_ONCE, kept);
    return to > floor ? to : null;
  }
}

/** A document of a change. Null: it is not kept. Throws DamagedRowError when it is not the one that was written. */
function storedIn(change: SqlRow, column: string): Uint8Array | null {
  const stored = bytesIn(change, column);
  return stored && stored.length > IS_THERE.length ? documentIn(stored) : null;
}

function idOf(row: Uint8Array): Bookmark {
  return bookmarkOf(row, { sort: KEY });
}
