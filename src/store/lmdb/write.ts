import type { Commits } from './commits.ts';
import { ITEMS, type ChangeNotes } from './feed/log.ts';
import { LmdbInsert } from './insert.ts';
import type { Outcome, Step } from './insert.ts';
import { keyRow } from './row.ts';
import type { KeyedRow } from './row.ts';
import { IF_NEW, NO_VALUE, type Database, type IndexName, type Tables } from './tables.ts';
import type { InsertResult, OnConflict } from '../store.ts';

/**
 * The most rows and bytes in one transaction. It holds the event loop for about 10 ms, and the file's only write lock.
 */
export const TRANSACTION_ROWS = 512;
export const TRANSACTION_BYTES = 4 * 1024 * 1024;

export const INDEXES: readonly IndexName[] = ['byPrice', 'byCategory', 'byCategoryPrice'];
export const COUNT_KEY = Buffer.from('items');

/** Tells of loads of the set, which nobody else may write to meanwhile. */
export interface LoadGate {
  readonly isUnderWay: boolean;
  /** Resolves when nobody is loading the set. */
  untilFree(): Promise<void>;
}

/**
 * Writes rows in bounded transactions. Each is on disk before the next one begins. Rows of inserts that wait share a
 * transaction, and so its flush.
 *
 * Existing rows are looked up inside the transaction, which holds the lock of the file, because another process may
 * write to it too.
 */
export class LmdbWriter {
  readonly #tables: Tables;
  readonly #commits: Pick<Commits, 'run'>;
  readonly #gate: LoadGate;
  readonly #log: ChangeNotes;
  readonly #transactionRows: number;
  #queue: LmdbInsert[] = [];
  #running: Promise<void> = Promise.resolve();

  /** `transactionRows`: rows per transaction, 512 by default. */
  constructor(
    tables: Tables,
    commits: Pick<Commits, 'run'>,
    gate: LoadGate,
    log: ChangeNotes,
    transactionRows: number = TRANSACTION_ROWS,
  ) {
    this.#tables = tables;
    this.#commits = commits;
    this.#gate = gate;
    this.#log = log;
    this.#transactionRows = transactionRows;
  }

  /** See ItemStore.insert. The documents must not change until the promise resolves. */
  insert(documents: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    const insert = new LmdbInsert(documents, onConflict);
    if (insert.isDone) return insert.result;
    this.#queue.push(insert);
    if (this.#queue.length === 1) this.#running = this.#run();
    return insert.result;
  }

  /** Resolves when no write is under way. */
  async idle(): Promise<void> {
    while (this.#queue.length > 0) await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const steps = this.#nextSteps();
      try {
        const outcomes = await this.#commits.run(() =>
          this.#gate.isUnderWay ? null : this.#writeAll(steps),
        );
        if (outcomes === null) {
          await this.#gate.untilFree();
          continue;
        }
        if (outcomes.length !== steps.length) throw new TypeError('a row without an outcome');
        for (const [at, outcome] of outcomes.entries()) steps[at]?.insert.note(steps[at].index, outcome);
      } catch (error) {
        for (const { insert } of steps) insert.fail(error);
      }
      this.#queue = this.#queue.filter((insert) => !insert.isDone);
    }
  }

  #nextSteps(): Step[] {
    const steps: Step[] = [];
    let bytes = 0;
    for (const insert of this.#queue)
      for (const step of insert.stepsLeft(this.#transactionRows)) {
        if (steps.length >= this.#transactionRows || bytes >= TRANSACTION_BYTES) return steps;
        steps.push(step);
        bytes += step.row.document.length;
      }
    return steps;
  }

  #writeAll(steps: readonly Step[]): Outcome[] {
    let added = 0;
    const changes = this.#log.begin(ITEMS);
    const outcomes = steps.map(({ row, insert }): Outcome => {
      if (this.#tables.items.putSync(row.id, row.document, IF_NEW)) {
        added++;
        changes.addNew(row.idValue);
      } else {
        if (insert.onConflict === 'skip') return 'skipped';
        if (insert.onConflict === 'fail') return 'refused';
        const old = this.#unlink(row);
        changes.addReplaced(row.idValue, old.idValue, { before: old.document, after: row.document });
        this.#tables.items.putSync(row.id, row.document);
      }
      for (const index of INDEXES) this.#tables[index].putSync(row[index], NO_VALUE);
      return 'written';
    });
    if (added > 0) this.#tables.meta.putSync(COUNT_KEY, countBytes(itemCount(this.#tables.meta) + added));
    changes.end(() => itemCount(this.#tables.meta));
    return outcomes;
  }

  /** Removes the changed index entries of a row that is about to be replaced. Returns that row. */
  #unlink(row: KeyedRow): KeyedRow {
    const document = this.#tables.items.getBinary(row.id);
    const old = document && keyRow(document);
    if (!old || typeof old === 'string') throw new Error(`a stored row cannot be read: ${old ?? 'missing'}`);
    for (const index of INDEXES)
      if (Buffer.compare(old[index], row[index]) !== 0) this.#tables[index].removeSync(old[index]);
    return old;
  }
}

/** The number of items in the store, as counted by the transactions that wrote them. */
export function itemCount(meta: Pick<Database, 'getBinary'>): number {
  const bytes = meta.getBinary(COUNT_KEY);
  return bytes ? new DataView(bytes.buffer, bytes.byteOffset).getFloat64(0) : 0;
}

/** A count in its stored form. */
export function countBytes(count: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, count);
  return bytes;
}
