import type { Bookmark } from '../../bookmark.ts';
import { HIGHEST, joinKeys, type Key } from '../keys.ts';
import type { Tables } from '../tables.ts';
import { LogEntry } from './log-entry.ts';
import { EPOCH_KEY, numberOf, recordKey, setKey, stateKey } from './log-keys.ts';
import { headOf, IdList, idsOf } from './record.ts';

/** The number of the items in the log. Resources have numbers from 1 on. */
export const ITEMS = 0;
/** Records that one transaction removes. It writes fewer, except for the largest imports. */
const PRUNED_AT_ONCE = 32;
/** Ids that one look reads: about 2 ms. */
const READ_AT_ONCE = 10_000;
/**
 * The most ids that the log of a set has. Where twice the number of its rows is more, that many: a reader that is
 * further behind has less to read when it begins anew.
 */
const MOST_IDS = 1_000_000;

/** The log of a set. Sequence numbers begin with 1. */
export interface LogState {
  /** The number of the last change. */
  readonly last: number;
  /** The log no longer has all changes up to this number. 0: it has all of them. */
  readonly floor: number;
  /** The number of ids in the log. */
  readonly ids: number;
}

/** The ids that changed after a place. */
export interface LoggedIds {
  /** Each once. */
  readonly ids: readonly Bookmark[];
  /** The number of the last change that was read. */
  readonly next: number;
}

export interface ChangeLogOptions {
  /** How long changes are kept, in milliseconds. */
  readonly ttlMs: number;
  /** A clock in milliseconds since 1970. */
  readonly now: () => number;
  /** The most ids in the log of a small set, 1,000,000 by default. */
  readonly mostIds?: number | undefined;
}

/**
 * The log of changed rows: for each set, the ids in the order of their changes. A transaction adds the ids of all rows
 * that it writes as one record, because an entry for each row would cost as much as another index. Old records are
 * removed by later transactions.
 */
export class ChangeLog {
  readonly #tables: Tables;
  readonly #options: ChangeLogOptions;
  readonly #list = new IdList();

  constructor(tables: Tables, options: ChangeLogOptions) {
    this.#tables = tables;
    this.#options = options;
  }

  /** Tells the log of this file from that of every other file. */
  get epoch(): string {
    const bytes = this.#tables.meta.getBinary(EPOCH_KEY);
    if (!bytes) throw new Error('the file has no log of changes');
    return Buffer.from(bytes).toString('hex');
  }

  state(set: number): LogState {
    const bytes = this.#tables.meta.getBinary(stateKey(set));
    if (!bytes) return { last: 0, floor: 0, ids: 0 };
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    return { last: view.getFloat64(0), floor: view.getFloat64(8), ids: view.getFloat64(16) };
  }

  /** In a transaction: begins to note changes of a set. To be ended in the same transaction. */
  begin(set: number): LogEntry {
    return new LogEntry(this.#list, {
      put: (record, count) => this.#append(set, record, count),
      now: this.#options.now,
      end: (rows) => this.prune(set, rows),
    });
  }

  /** In a transaction: everything changed. All places before now expire. */
  raiseFloor(set: number): void {
    const state = this.state(set);
    const last = state.last + 1;
    this.#put(set, { ...state, last, floor: last });
  }

  /** In a transaction: forgets a set that nothing leads to any more. Its records are left for `sweep`. */
  forget(set: number): void {
    this.#tables.meta.removeSync(stateKey(set));
  }

  /**
   * In a transaction: removes the oldest records that are not to be kept. `rows`: the number of rows of the set. Returns
   * whether there were any.
   */
  prune(set: number, rows: number): boolean {
    const state = this.state(set);
    const { keys, ...pruned } = this.#prunable(set, state, rows);
    for (const key of keys) this.#tables.changes.removeSync(key);
    if (keys.length > 0) this.#put(set, { ...state, ...pruned });
    return keys.length > 0;
  }

  /** Whether `prune` would remove a record. */
  canPrune(set: number, rows: number): boolean {
    return this.#prunable(set, this.state(set), rows, 1).keys.length > 0;
  }

  /** The ids that changed after a number, at most `most`. Reads a part of the log: `next` tells how far. */
  read(set: number, after: number, most: number): LoggedIds {
    const found = new Map<string, Bookmark>();
    let next = after;
    let seen = 0;
    const isWhole = this.#walk(set, after + 1, (end, record) => {
      if (seen >= READ_AT_ONCE) return false;
      const { count } = headOf(record);
      let sequence = end - count;
      for (const id of idsOf(record)) {
        sequence++;
        seen++;
        if (sequence <= after) continue;
        const name = Buffer.from(id).toString('latin1');
        if (found.size >= most && !found.has(name)) return false;
        found.set(name, id);
        next = sequence;
      }
      return true;
    });
    return { ids: [...found.values()], next: isWhole ? this.state(set).last : next };
  }

  #append(set: number, record: Uint8Array, count: number): void {
    const state = this.state(set);
    const last = state.last + count;
    this.#tables.changes.putSync(recordKey(set, last), record);
    this.#put(set, { ...state, last, ids: state.ids + count });
  }

  /** The first records that are not to be kept, and the state of the log without them. */
  #prunable(
    set: number,
    { floor, ids }: LogState,
    rows: number,
    most = PRUNED_AT_ONCE,
  ): Pick<LogState, 'floor' | 'ids'> & { readonly keys: readonly Key[] } {
    const oldest = this.#options.now() - this.#options.ttlMs;
    const mostIds = Math.max(this.#options.mostIds ?? MOST_IDS, 2 * rows);
    const keys: Key[] = [];
    let [pruned, left] = [floor, ids];
    this.#walk(set, 0, (end, record) => {
      const { time, count } = headOf(record);
      if (keys.length >= most) return false;
      if (end > floor && time >= oldest && left <= mostIds) return false;
      keys.push(recordKey(set, end));
      pruned = Math.max(pruned, end);
      left -= count;
      return true;
    });
    return { floor: pruned, ids: left, keys };
  }

  /**
   * Calls `visit` with each record from the one that has this number on, and the number of its last id, until it returns
   * false. Returns whether it reached the end. `visit` must not look at the file.
   */
  #walk(set: number, from: number, visit: (end: number, record: Uint8Array) => boolean): boolean {
    const tables = this.#tables;
    let record: Uint8Array = new Uint8Array(0);
    tables.prefix = 0;
    tables.sink = { row: (bytes) => (record = bytes) };
    const range = { start: recordKey(set, from), end: joinKeys(setKey(set), HIGHEST), reverse: false };
    const steps = tables.changes.getRange({ ...range, exclusiveStart: false, offset: 0, values: true });
    const iterator = steps[Symbol.iterator]();
    try {
      while (iterator.next().done !== true) if (!visit(numberOf(tables.found), record)) return false;
      return true;
    } finally {
      iterator.return?.();
      tables.sink = null;
    }
  }

  #put(set: number, { last, floor, ids }: LogState): void {
    const bytes = new Uint8Array(24);
    const view = new DataView(bytes.buffer);
    view.setFloat64(0, last);
    view.setFloat64(8, floor);
    view.setFloat64(16, ids);
    this.#tables.meta.putSync(stateKey(set), bytes);
  }
}
