import { reasonOf } from '../../error-reason.ts';
import { withUnusable } from './change-set.ts';
import { documentIn } from './checked-rows.ts';
import { bytesIn } from './connection.ts';
import type { Core } from './core.ts';
import { keyRow } from './keyed.ts';
import { columnOf, indexSql, rowsTable } from './layout.ts';
import { indexOf, isInBuilding, nameOf, type IndexRecord, type SetRecord, type SetShape } from './sets.ts';

/** Rows that one transaction gives their keys: about 8 ms of the event loop. */
const FILLED_AT_ONCE = 512;
/** How long a build that failed is left alone: each try costs a transaction and a line in the log. Milliseconds. */
const PAUSE_MS = 60_000;
const NOTHING = new Uint8Array(0);

export type SetIndexes = ReturnType<typeof setIndexes>;

/**
 * The indexes of a set. One that is added to a set with rows gets a column, then each row its key in bounded transactions,
 * then it is made. Each transaction stores how far it has come, so another process goes on after a kill.
 */
export function setIndexes(core: Core, { name }: SetShape) {
  const { connection, sets, looks, writes, maintenance } = core;
  const { now, onWarning, transactionRows = FILLED_AT_ONCE } = core.options;
  let building: Promise<void> | null = null;
  let restsUntil = -Infinity;
  let isOpen = true;

  return { declare, add, buildLater, close };

  /** Adds the indexes that the set lacks. Those of a set with rows must then be built. */
  async function declare(wanted: readonly (readonly string[])[]): Promise<void> {
    if (await looks.soon(() => missingIn(sets.get(name), wanted).length === 0)) return;
    await writes.run(() => {
      const set = sets.get(name);
      for (const paths of missingIn(set, wanted)) addTo(sets.get(name), paths);
    });
  }

  async function add(paths: readonly string[], onRows: (rows: number) => void, signal: AbortSignal) {
    const find = (set = sets.get(name)) => set.indexes.find((one) => nameOf(one.paths) === nameOf(paths));
    const before = await looks.soon(() => find());
    if (before?.unusable === undefined) await declare([paths]);
    else
      await writes.run(() => {
        const set = sets.get(name);
        const index = find(set);
        if (index?.unusable === undefined) return;
        addTo({ ...set, indexes: set.indexes.filter((one) => one !== index) }, paths);
      });
    await build(() => isOpen && !signal.aborted, onRows);
    signal.throwIfAborted();
    const after = await looks.soon(() => find());
    if (!after) throw new Error(`the index ${nameOf(paths)} is gone`);
    return { index: indexOf(after), isNew: before?.unusable !== undefined || before?.builtTo !== null };
  }

  /** Builds what is not whole in the background, unless a build is under way or has failed within the last minute. */
  function buildLater(set: SetRecord): void {
    if (building || !isOpen || !set.indexes.some(isInBuilding) || now() < restsUntil) return;
    building = build(() => isOpen)
      .catch((error: unknown) => {
        restsUntil = now() + PAUSE_MS;
        onWarning(
          `the indexes of ${set.label} are not whole yet: ${reasonOf(error)}; the first request after a minute tries again`,
        );
      })
      .finally(() => (building = null));
  }

  /** Resolves when nothing is being built. What is unfinished goes on when its set is opened again. */
  async function close(): Promise<void> {
    isOpen = false;
    await building;
  }

  /** In a transaction. */
  function addTo(set: SetRecord, paths: readonly string[]): void {
    const number = Math.max(0, ...sets.get(name).indexes.map((one) => one.number)) + 1;
    connection.exec(`alter table ${rowsTable(set.number)} add column ${columnOf(number)} blob`);
    const isEmpty = sets.rows(name) === 0;
    if (isEmpty) connection.exec(indexSql(set.number, columnOf(number)));
    sets.put({ ...set, indexes: [...set.indexes, { number, paths, builtTo: isEmpty ? null : '' }] });
  }

  async function build(goesOn: () => boolean, onRows: (rows: number) => void = () => undefined) {
    while (goesOn()) {
      const filled = await writes.run(() => fillSome(sets.get(name)));
      if (filled === null) return;
      onRows(filled.rows);
      if (filled.whole === null) continue;
      const { number, index } = filled.whole;
      await writes.alone(() => maintenance.run(indexSql(number, columnOf(index))));
      await writes.run(() => {
        const set = sets.get(name);
        if (set.number === number) putIndex(set, index, { builtTo: null });
      });
    }
  }

  /** In a transaction: gives the next rows their keys in the first index in building. Null: there is none. */
  function fillSome(set: SetRecord) {
    const at = set.indexes.findIndex(isInBuilding);
    const index = set.indexes[at];
    if (!index) return null;
    const [table, column] = [rowsTable(set.number), columnOf(index.number)];
    const rows = connection.all(
      `select n, k, d from ${table} where k > ? order by k limit ?`,
      ...[Buffer.from(index.builtTo ?? '', 'hex'), transactionRows],
    );
    for (const row of rows) {
      const keyed = keyRow(documentIn(bytesIn(row, 'd') ?? NOTHING), [index]);
      const reason = typeof keyed === 'string' ? `${keyed} in a row` : keyed.unusable[0]?.reason;
      if (typeof keyed === 'string' || reason !== undefined) {
        sets.put(withUnusable(set, [{ index: at, reason: reason ?? '' }]));
        return { rows: rows.length, whole: null };
      }
      connection.run(
        `update ${table} set ${column} = ? where n = ?`,
        keyed.entries[0] ?? null,
        row.n ?? null,
      );
    }
    const isWhole = rows.length < transactionRows;
    const last = bytesIn(rows.at(-1), 'k') ?? NOTHING;
    if (!isWhole) putIndex(set, index.number, { builtTo: Buffer.from(last).toString('hex') });
    return { rows: rows.length, whole: isWhole ? { number: set.number, index: index.number } : null };
  }

  function putIndex(set: SetRecord, number: number, facts: Partial<IndexRecord>): void {
    const indexes = set.indexes.map((one) => (one.number === number ? { ...one, ...facts } : one));
    sets.put({ ...set, indexes });
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
