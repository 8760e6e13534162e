import { reasonOf } from '../../../base/error-reason.ts';
import type { AddedIndex } from '../../collection.ts';
import { KEY_INDEX, type Index } from '../../indexes.ts';
import { withUnusable } from './change-set.ts';
import { documentAt } from '../file/checked-rows.ts';
import { bytesIn } from '../file/connection.ts';
import type { Core } from '../core.ts';
import { keyRow } from '../file/keyed.ts';
import { columnOf, indexSql, rowsTable } from '../file/layout.ts';
import {
  indexOf,
  isInBuilding,
  nameOf,
  type IndexRecord,
  type CollectionRecord,
} from '../file/collections.ts';

/** Rows that one transaction gives their keys: about 8 ms of the event loop. */
const FILLED_AT_ONCE = 512;
/** How long a build that failed is left alone: each try costs a transaction and a line in the log. Milliseconds. */
const PAUSE_MS = 60_000;
/** How long a list of indexes, and what is known with it, stands for the collection. Milliseconds. */
const LISTED_MS = 1_000;

/**
 * The indexes of a collection. One that is added to a collection with rows gets a column, then each row its key in bounded transactions,
 * then it is made. Each transaction stores how far it has come, so another process goes on after a kill.
 */
export class Indexes {
  readonly #core: Core;
  readonly #name: string;
  #building: Promise<void> | null = null;
  #restsUntil = -Infinity;
  #isOpen = true;
  #listed: {
    readonly records: CollectionRecord['indexes'];
    readonly at: number;
    readonly indexes: readonly Index[];
  } | null = null;

  constructor(core: Core, name: string) {
    this.#core = core;
    this.#name = name;
  }

  /** The indexes as plans see them. The same array as long as it is not too old and the indexes are the same. */
  listOf(records: CollectionRecord['indexes']): readonly Index[] {
    const now = this.#core.options.now();
    if (this.#listed?.records !== records || now - this.#listed.at > LISTED_MS)
      this.#listed = { records, at: now, indexes: [KEY_INDEX, ...records.map(indexOf)] };
    return this.#listed.indexes;
  }

  /** Adds the indexes that the collection lacks. Those of a collection with rows must then be built. */
  async declare(wanted: readonly (readonly string[])[]): Promise<void> {
    const { looks, collections, writes } = this.#core;
    if (await looks.soon(() => missingIn(collections.get(this.#name), wanted).length === 0)) return;
    await writes.run(() => {
      for (const paths of missingIn(collections.get(this.#name), wanted))
        this.#addTo(collections.get(this.#name), paths);
    });
  }

  /** See OwnedCollection.addIndex. */
  async add(
    paths: readonly string[],
    onRows: (rows: number) => void,
    signal: AbortSignal,
  ): Promise<AddedIndex> {
    const { looks, collections, writes } = this.#core;
    const find = (collection = collections.get(this.#name)) =>
      collection.indexes.find((one) => nameOf(one.paths) === nameOf(paths));
    const before = await looks.soon(() => find());
    if (before?.unusable === undefined) await this.declare([paths]);
    else
      await writes.run(() => {
        const collection = collections.get(this.#name);
        const index = find(collection);
        if (index?.unusable === undefined) return;
        this.#addTo({ ...collection, indexes: collection.indexes.filter((one) => one !== index) }, paths);
      });
    await this.#build(() => this.#isOpen && !signal.aborted, onRows);
    signal.throwIfAborted();
    const after = await looks.soon(() => find());
    if (!after) throw new Error(`the index ${nameOf(paths)} is gone`);
    return { index: indexOf(after), isNew: before?.unusable !== undefined || before?.builtTo !== null };
  }

  /** Builds what is not whole in the background, unless a build is under way or has failed within the last minute. */
  buildLater(collection: CollectionRecord): void {
    const { now, onWarning } = this.#core.options;
    if (this.#building || !this.#isOpen || !collection.indexes.some(isInBuilding) || now() < this.#restsUntil)
      return;
    this.#building = this.#build(() => this.#isOpen)
      .catch((error: unknown) => {
        this.#restsUntil = now() + PAUSE_MS;
        onWarning(
          `the indexes of ${collection.label} are not whole yet: ${reasonOf(error)}; the first request after a minute tries again`,
        );
      })
      .finally(() => (this.#building = null));
  }

  /** Resolves when nothing is being built. What is unfinished goes on when its collection is opened again. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#building;
  }

  /** In a transaction. */
  #addTo(collection: CollectionRecord, paths: readonly string[]): void {
    const { connection, collections } = this.#core;
    const number =
      Math.max(collection.lastIndex ?? 0, ...collections.get(this.#name).indexes.map((one) => one.number)) +
      1;
    connection.exec(`alter table ${rowsTable(collection.number)} add column ${columnOf(number)} blob`);
    const isEmpty = collections.rows(this.#name) === 0;
    if (isEmpty) connection.exec(indexSql(collection.number, columnOf(number)));
    collections.put({
      ...collection,
      indexes: [...collection.indexes, { number, paths, builtTo: isEmpty ? null : '' }],
    });
  }

  async #build(goesOn: () => boolean, onRows: (rows: number) => void = () => undefined): Promise<void> {
    const { collections, writes, maintenance } = this.#core;
    while (goesOn()) {
      const filled = await writes.run(() => this.#fillSome(collections.get(this.#name)));
      if (filled === null) return;
      onRows(filled.rows);
      if (filled.whole === null) continue;
      const { number, index } = filled.whole;
      await writes.alone(() => maintenance.makeIndex(indexSql(number, columnOf(index))));
      await writes.run(() => {
        const collection = collections.get(this.#name);
        if (collection.number === number) this.#putIndex(collection, index, { builtTo: null });
      });
    }
  }

  /** In a transaction: gives the next rows their keys in the first index in building. Null: there is none. */
  #fillSome(collection: CollectionRecord) {
    const { connection, collections, options } = this.#core;
    const { transactionRows = FILLED_AT_ONCE } = options;
    const at = collection.indexes.findIndex(isInBuilding);
    const index = collection.indexes[at];
    if (!index) return null;
    const table = rowsTable(collection.number);
    const indexes = [index];
    const rows = connection.all(
      `select n, k, d from ${table} where k > ? order by k limit ?`,
      ...[Buffer.from(index.builtTo ?? '', 'hex'), transactionRows],
    );
    for (const row of rows) {
      const keyed = keyRow(documentAt(row, 'd'), indexes);
      const reason = typeof keyed === 'string' ? `${keyed} in a row` : keyed.unusable[0]?.reason;
      if (typeof keyed === 'string' || reason !== undefined) {
        collections.put(withUnusable(collection, [{ index: at, reason: reason ?? '' }]));
        return { rows: rows.length, whole: null };
      }
      const [entry = null] = keyed.entries;
      connection.run(`update ${table} set ${columnOf(index.number)} = ? where n = ?`, entry, row.n ?? null);
    }
    const isWhole = rows.length < transactionRows;
    const last = bytesIn(rows.at(-1), 'k') ?? new Uint8Array(0);
    if (!isWhole) this.#putIndex(collection, index.number, { builtTo: Buffer.from(last).toString('hex') });
    return { rows: rows.length, whole: isWhole ? { number: collection.number, index: index.number } : null };
  }

  #putIndex(collection: CollectionRecord, number: number, facts: Partial<IndexRecord>): void {
    const indexes = collection.indexes.map((one) => (one.number === number ? { ...one, ...facts } : one));
    this.#core.collections.put({ ...collection, indexes });
  }
}

/** The wanted indexes that a collection lacks, each once. */
function missingIn(
  { indexes }: CollectionRecord,
  wanted: readonly (readonly string[])[],
): readonly (readonly string[])[] {
  const missing = new Map(wanted.map((paths) => [nameOf(paths), paths]));
  for (const { paths } of indexes) missing.delete(nameOf(paths));
  return [...missing.values()];
}
