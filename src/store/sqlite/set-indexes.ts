import { reasonOf } from '../../error-reason.ts';
import type { AddedIndex } from '../store.ts';
import { documentIn } from './checked-rows.ts';
import { bytesIn } from './connection.ts';
import { keyRow } from './keyed.ts';
import { columnOf, indexSql, rowsTable } from './layout.ts';
import type { LoadGate } from './load-gate.ts';
import type { SetParts } from './set-parts.ts';
import { indexOf, isInBuilding, nameOf, type IndexRecord, type SetRecord } from './sets.ts';
import { withUnusable } from './change-set.ts';

/** Rows that one transaction gives their keys: about 8 ms of the event loop. */
const FILLED_AT_ONCE = 512;
/** How long a build that failed is left alone: each try costs a transaction and a line in the log. Milliseconds. */
const PAUSE_MS = 60_000;

/**
 * The indexes of a set. One that is added to a set with rows gets a column, then each row its key in bounded transactions,
 * then it is made. Each transaction stores how far it has come, so another process goes on after a kill.
 */
export class SetIndexes {
  readonly #options: SetParts;
  readonly #gate: LoadGate;
  #building: Promise<void> | null = null;
  #restsUntil = -Infinity;
  #isOpen = true;

  constructor(options: SetParts, gate: LoadGate) {
    [this.#options, this.#gate] = [options, gate];
  }

  /** Adds the indexes that the set lacks. Those of a set with rows must then be built. */
  async declare(wanted: readonly (readonly string[])[]): Promise<void> {
    const { sets, looks, name } = this.#options;
    if (await looks.soon(() => missingIn(sets.get(name), wanted).length === 0)) return;
    await this.#gate.write((set) => {
      for (const paths of missingIn(set, wanted)) this.#add(sets.get(name), paths);
    });
  }

  /** See OwnedCollection.addIndex. */
  async add(
    paths: readonly string[],
    onRows: (rows: number) => void,
    signal: AbortSignal,
  ): Promise<AddedIndex> {
    const { sets, looks, name } = this.#options;
    const find = (set = sets.get(name)) => set.indexes.find((one) => nameOf(one.paths) === nameOf(paths));
    const before = await looks.soon(() => find());
    if (before?.unusable === undefined) await this.declare([paths]);
    else
      await this.#gate.write((set) => {
        const index = find(set);
        if (index?.unusable === undefined) return;
        this.#add({ ...set, indexes: set.indexes.filter((one) => one !== index) }, paths);
      });
    await this.#build(() => this.#isOpen && !signal.aborted, onRows);
    signal.throwIfAborted();
    const now = await looks.soon(() => find());
    if (!now) throw new Error(`the index ${nameOf(paths)} is gone`);
    return { index: indexOf(now), isNew: before?.unusable !== undefined || before?.builtTo !== null };
  }

  /** Builds what is not whole in the background, unless a build is under way or has failed within the last minute. */
  buildLater(set: SetRecord): void {
    const { now, onWarning } = this.#options;
    if (this.#building || !this.#isOpen || set.loading || !set.indexes.some(isInBuilding)) return;
    if (now() < this.#restsUntil) return;
    this.#building = this.#build(() => this.#isOpen)
      .catch((error: unknown) => {
        this.#restsUntil = now() + PAUSE_MS;
        onWarning(
          `the indexes of ${set.label} are not whole yet: ${reasonOf(error)}; the first request after a minute tries again`,
        );
      })
      .finally(() => (this.#building = null));
  }

  /** Resolves when nothing is being built. What is unfinished goes on when its set is opened again. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#building;
  }

  /** In a transaction. */
  #add(set: SetRecord, paths: readonly string[]): void {
    const { connection, sets } = this.#options;
    const number = Math.max(0, ...sets.get(set.name).indexes.map((one) => one.number)) + 1;
    connection.exec(`alter table ${rowsTable(set.number)} add column ${columnOf(number)} blob`);
    const isEmpty = sets.rows(set.name) === 0;
    if (isEmpty) connection.exec(indexSql(set.number, columnOf(number)));
    sets.put({ ...set, indexes: [...set.indexes, { number, paths, builtTo: isEmpty ? null : '' }] });
  }

  async #build(goesOn: () => boolean, onRows: (rows: number) => void = () => undefined): Promise<void> {
    const { writes, maintenance, sets, name } = this.#options;
    while (goesOn()) {
      const filled = await this.#gate.write((set) => this.#fillSome(set));
      if (filled === null) return;
      onRows(filled.rows);
      if (filled.isWhole === null) continue;
      const { number, column } = filled.isWhole;
      await writes.alone(() => maintenance.run(indexSql(number, column)));
      await writes.run(() => {
        const set = sets.get(name);
        if (set.number !== number) return;
        const whole = (one: IndexRecord) =>
          columnOf(one.number) === column ? { ...one, builtTo: null } : one;
        sets.put({ ...set, indexes: set.indexes.map(whole) });
      });
    }
  }

  /** In a transaction: gives the next rows their keys in the first index in building. Null: there is none. */
  #fillSome(set: SetRecord) {
    const { connection, sets, transactionRows = FILLED_AT_ONCE } = this.#options;
    const at = set.indexes.findIndex(isInBuilding);
    const index = set.indexes[at];
    if (!index) return null;
    const [table, column] = [rowsTable(set.number), columnOf(index.number)];
    const rows = connection.all(
      `select n, k, d from ${table} where k > ? order by k limit ?`,
      ...[Buffer.from(index.builtTo ?? '', 'hex'), transactionRows],
    );
    for (const row of rows) {
      const keyed = keyRow(documentIn(bytesIn(row, 'd') ?? new Uint8Array(0)), [index]);
      const reason = typeof keyed === 'string' ? `${keyed} in a row` : keyed.unusable[0]?.reason;
      if (typeof keyed === 'string' || reason !== undefined) {
        sets.put(withUnusable(set, [{ index: at, reason: reason ?? '' }]));
        return { rows: rows.length, isWhole: null };
      }
      const [entry = null] = keyed.entries;
      connection.run(`update ${table} set ${column} = ? where n = ?`, entry, row.n ?? null);
    }
    if (rows.length < transactionRows) return { rows: rows.length, isWhole: { number: set.number, column } };
    const last = bytesIn(rows.at(-1), 'k') ?? new Uint8Array(0);
    const builtTo = Buffer.from(last).toString('hex');
    sets.put({ ...set, indexes: set.indexes.map((one) => (one === index ? { ...one, builtTo } : one)) });
    return { rows: rows.length, isWhole: null };
  }
}

/** The wanted indexes that a set lacks, each once. */
function missingIn(
  { indexes }: SetRecord,
  wanted: readonly (readonly string[])[],
): readonly (readonly string[])[] {
  const missing = new Map(wanted.map((paths) => [nameOf(paths), paths]));
  for (const { paths } of indexes) missing.delete(nameOf(paths));
  return [...missing.values()];
}
