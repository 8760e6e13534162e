import { KEY_EXISTS } from '../../bookmark.ts';
import type { FilledRow, HowToFill } from '../../collection.ts';
import { compareKeys, type Key } from '../../values/keys.ts';
import { ChangeSet, withUnusable } from './change-set.ts';
import { documentAt, documentIn } from '../file/checked-rows.ts';
import type { Core } from '../core.ts';
import { diskFull, freeBytes, RESERVE_BYTES } from '../file/errors.ts';
import type { ImportLease } from './import-lease.ts';
import type { Maintenance, PackedRows } from '../file/maintenance.ts';
import { PendingRows } from './pending-rows.ts';
import { keyOfRow } from '../file/keyed.ts';
import { columnOf, columnsOf, indexName, indexSql, rowsIn, rowsTable } from '../file/layout.ts';
import {
  LARGE_BYTES,
  NEW,
  newIdentity,
  type IndexRecord,
  type CollectionRecord,
  type CollectionShape,
  type SideTables,
} from '../file/collections.ts';

/** The most rows and bytes in one transaction: about 0.1 s. */
const TRANSACTION_ROWS = 10_000;
const TRANSACTION_BYTES = 8 * 1024 * 1024;
/** Rows and changes that are read at once of what came during a load. */
const READ_AT_ONCE = 1_000;
/** The most keys in one query. */
const KEYS_AT_ONCE = 500;
/** The longest that a statement over all rows may take for each of them. Milliseconds. */
const LONGEST_FOR_ROW_MS = 0.1;

/**
 * Fills tables of a collection that nothing leads to. Rows are added as they come. When they did not come in order of their keys,
 * they are sorted into further tables in the end. Then the indexes are made. One transaction makes the tables those of the
 * collection, and adds the rows that came into the old tables meanwhile: what others wrote during the load stays.
 */
export class SideLoad {
  readonly #core: Core;
  readonly #shape: CollectionShape;
  readonly #lease: ImportLease;
  readonly #side: SideTables;
  readonly #how: HowToFill;
  #number: number;
  #collection: CollectionRecord;
  #rows = new PendingRows();
  /** Those that are being written. */
  #others = new PendingRows();
  #bytesInAll = 0;
  /** The last one of the rows that are written or are being written. */
  #lastKey: Key | null = null;
  #isInOrder = true;
  #hasKeyIndex = false;
  #hasLargeRows = false;
  #writing: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | null = null;
  #written = 0;

  constructor(core: Core, shape: CollectionShape, lease: ImportLease, side: SideTables, how: HowToFill) {
    this.#core = core;
    this.#shape = shape;
    this.#lease = lease;
    this.#side = side;
    this.#how = how;
    this.#number = side.numbers[0] ?? 0;
    const indexes = lease.collection.indexes.map(({ number, paths }) => ({ number, paths, builtTo: null }));
    this.#collection = { ...lease.collection, indexes };
  }

  /** Resolves when all rows are durable and visible. When it rejects, none is. */
  async fill(batches: AsyncIterable<readonly FilledRow[]>): Promise<void> {
    try {
      for await (const batch of batches) {
        for (const row of batch) this.#add(row);
        if (this.#rows.rows >= TRANSACTION_ROWS || this.#rows.bytes >= TRANSACTION_BYTES)
          await this.#append();
      }
      await this.#append();
    } finally {
      await this.#writing;
    }
    this.#throwFailure();
    const from = this.#number;
    const twice = this.#isInOrder ? [] : await this.#sort();
    for (const column of ['k', ...columnsOf(this.#collection.indexes)])
      await this.#alone((maintenance) => maintenance.makeIndex(indexSql(this.#number, column)));
    const taken = await this.#core.writes.run(() => this.#publish(this.#written - twice.length, from));
    this.#report([...twice, ...taken]);
  }

  #add({ item, at }: FilledRow): void {
    // Numbers begin at 1 as those of SQLite do.
    const added = this.#rows.add(at + 1, item, this.#collection.indexes, this.#shape.check);
    if (typeof added === 'string') {
      this.#how.refuse(at, added);
      return;
    }
    if (added.length > 0) this.#collection = withUnusable(this.#collection, added);
    this.#hasLargeRows ||= item.length > LARGE_BYTES;
  }

  /** Starts to write the rows that wait. Resolves when those before them are written, so that reading goes on beside. */
  async #append(): Promise<void> {
    await this.#writing;
    this.#throwFailure();
    const rows = this.#rows;
    if (rows.rows === 0) return;
    this.#isInOrder &&=
      rows.isInOrder && (this.#lastKey === null || compareKeys(this.#lastKey, rows.firstKey) < 0);
    this.#lastKey = rows.lastKey.slice();
    this.#assertSpace(rows.bytes);
    this.#rows = this.#others;
    this.#rows.clear();
    this.#others = rows;
    const packed = rows.packed();
    const isInOrder = this.#isInOrder;
    // The next call throws a failure.
    this.#writing = this.#core.writes
      .alone(() => this.#insert(packed, isInOrder))
      .catch((error: unknown) => {
        this.#failure ??= { error };
      });
    this.#written += rows.rows;
    this.#bytesInAll += rows.bytes;
  }

  /** Inserts rows in the thread, so that reading goes on beside on a processor of its own. */
  async #insert(rows: PackedRows, isInOrder: boolean): Promise<void> {
    const { connection, file, maintenance, checkpoints } = this.#core;
    const assertHeld = () => connection.look(() => this.#lease.held());
    file.checkWritable(false);
    assertHeld();
    const columns = ['n', 'k', 'd', ...columnsOf(this.#collection.indexes)];
    try {
      await this.#indexKeys(isInOrder);
      await maintenance.insert(rowsTable(this.#number), columns, rows);
    } catch (error) {
      assertHeld(); // the tables go with the lease
      throw error;
    }
    await checkpoints.make();
  }

  /** Makes or drops the index of the keys. To append to it costs less than to sort, while rows come in order of their keys. */
  async #indexKeys(isWanted: boolean): Promise<void> {
    if (this.#hasKeyIndex === isWanted) return;
    const number = this.#number;
    await this.#core.maintenance.run(
      isWanted ? indexSql(number, 'k') : `drop index ${indexName(number, 'k')}`,
    );
    this.#hasKeyIndex = isWanted;
  }

  /** Sorts rows into new tables: of each id the last for `replace`, else the first. Returns the places of the others. */
  async #sort(): Promise<readonly number[]> {
    const { connection, writes } = this.#core;
    this.#assertSpace(this.#bytesInAll);
    const from = rowsTable(this.#number);
    const number = await writes.run(() => this.#lease.addTables());
    const columns = ['k', 'd', ...columnsOf(this.#collection.indexes)].join();
    const [kept, direction] = this.#how.onConflict === 'replace' ? ['max(n)', 'desc'] : ['min(n)', 'asc'];
    // The other columns of a group are those of the row that min or max finds (sqlite.org/lang_select.html#bareagg).
    const sorted = `select ${columns} from (select ${columns}, ${kept} from ${from} group by k)`;
    await this.#alone((maintenance) =>
      maintenance.run(`insert into ${rowsTable(number)}(${columns}) ${sorted}`),
    );
    this.#number = number;
    const ranked = `select n, row_number() over (partition by k order by n ${direction}) place from ${from}`;
    const counted = `select count(*) rows from ${rowsTable(number)}`;
    const others = await writes.run(() =>
      connection.get(counted)?.rows === this.#written
        ? []
        : connection.all(`select n from (${ranked}) where place > 1 order by n`),
    );
    return others.map(({ n }) => Number(n) - 1);
  }

  /**
   * In a transaction: makes the tables those of the collection, and adds what came into the old ones meanwhile. Returns the places
   * of rows for which others had come.
   */
  #publish(rows: number, from: number): readonly number[] {
    const { collections } = this.#core;
    const before = this.#lease.ended();
    const published = {
      ...before,
      ...NEW,
      indexes: before.indexes.map((index) => this.#indexNow(index)),
      hasLargeRows: this.#hasLargeRows || undefined,
      isUnfilled: undefined,
      // A stream of the rows that are replaced must not go on in those that came.
      identity: this.#side.rows > 0 ? newIdentity() : before.identity,
    };
    const collection = collections.renumber(published, this.#number);
    collections.addRows(collection.name, rows);
    const changes = new ChangeSet(this.#core, this.#shape, collection);
    const taken: Key[] = [];
    for (const document of this.#cameMeanwhile(before)) {
      if (changes.write(document, 'skip') === 'written' || this.#how.onConflict === 'replace') continue;
      changes.write(document, 'replace');
      const key = keyOfRow(document);
      if (key) taken.push(key);
    }
    changes.end();
    return this.#placesOf(taken, from);
  }

  /** In a transaction: an index as the new tables have it. One that was added during the load is to be built. */
  #indexNow({ number, paths }: IndexRecord): IndexRecord {
    const own = this.#collection.indexes.find((one) => one.number === number);
    if (own) return own;
    const table = rowsTable(this.#number);
    this.#core.connection.exec(`alter table ${table} add column ${columnOf(number)} blob`);
    return { number, paths, builtTo: '' };
  }

  /** In a transaction: the rows that were written since the load began. */
  *#cameMeanwhile(collection: CollectionRecord): Generator<Uint8Array, void, undefined> {
    const { connection, log, reader } = this.#core;
    const { of, after } = this.#side;
    if (collection.number === of) {
      const { last } = log.state(collection);
      for (let at = after; at < last;) {
        const { ids, next } = log.read(collection, at, READ_AT_ONCE, null);
        for (const id of ids) {
          const key = keyOfRow(id);
          const row = key && reader.row(of, key);
          if (row) yield documentIn(row);
        }
        at = next;
      }
      return;
    }
    // The rows were removed meanwhile: all that are there came later.
    for (const row of rowsIn(connection, collection.number, ['n', 'd'], READ_AT_ONCE))
      yield documentAt(row, 'd');
  }

  /** `left`: the places of rows for which there were others. */
  #report(left: readonly number[]): void {
    const { onConflict, onRemoved, onWritten, refuse } = this.#how;
    onRemoved?.({ rows: this.#side.rows, is: 'exact' });
    if (onConflict === 'fail') for (const at of left) refuse(at, KEY_EXISTS);
    const rows = onConflict === 'replace' ? 0 : left.length;
    onWritten({ written: this.#written - rows, skipped: onConflict === 'skip' ? rows : 0 });
  }

  /** Where rows with these keys came in the source, as the table of a number has them. */
  #placesOf(keys: readonly Key[], number: number): readonly number[] {
    const places: number[] = [];
    for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
      const some = keys.slice(at, at + KEYS_AT_ONCE);
      const sql = `select min(n) n from ${rowsTable(number)} where k in (${some.map(() => '?').join()}) group by k`;
      places.push(...this.#core.connection.all(sql, ...some).map(({ n }) => Number(n) - 1));
    }
    return places;
  }

  /** Leaves as much free as it takes to undo the load. Throws the error for a full disk. */
  #assertSpace(bytes: number): void {
    const { directory } = this.#core.options;
    if (freeBytes(directory) < RESERVE_BYTES + bytes) throw diskFull(directory, bytes);
  }

  /** Runs a statement over all rows. This process says before that it runs: it cannot meanwhile. */
  async #alone(run: (maintenance: Maintenance) => Promise<void>): Promise<void> {
    const { writes, maintenance } = this.#core;
    await this.#lease.renew(this.#written * LONGEST_FOR_ROW_MS);
    await writes.alone(() => run(maintenance));
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
