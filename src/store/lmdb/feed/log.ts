import type { Bookmark } from '../../bookmark.ts';
import type { Tables } from '../tables.ts';
import { textOf } from '../../shared-feed.ts';
import { beforeInView } from './before.ts';
import { LogEntry } from './log-entry.ts';
import { EPOCH_KEY, recordKey, stateKey } from './log-keys.ts';
import { walkLog } from './log-walk.ts';
import { headOf, IdList, idsOf } from './record.ts';
import { Retention, type RetentionOptions } from './retention.ts';
import { LogViews } from './views.ts';

/** The number of the items in the log. Resources have numbers from 1 on. */
export const ITEMS = 0;
/** Ids that one look reads: about 2 ms. */
const READ_AT_ONCE = 10_000;

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
  /** The ids (see `textOf`) of rows that had the values of the part before one of the changes. */
  readonly wereInside: ReadonlySet<string>;
  /** The number of the last change that was read. */
  readonly next: number;
}

/** The part that a reader of the log knows. */
export interface PartOfLog {
  /** The number of its view. */
  readonly view: number;
  /** See `digestOfValues`. */
  readonly digest: Uint8Array;
}

/** Where writers note what they change. */
export interface ChangeNotes {
  /** In a transaction: begins to note changes of a set. To be ended in the same transaction. */
  begin(set: number): Pick<LogEntry, 'addNew' | 'addReplaced' | 'end'>;
}

/**
 * The log of changed rows: for each set, the ids in the order of their changes. A transaction adds the ids of all rows
 * that it writes as one record, because an entry for each row would cost as much as another index. Old records are
 * removed by later transactions.
 */
export class ChangeLog implements ChangeNotes {
  readonly #tables: Tables;
  readonly #now: () => number;
  readonly #retention: Retention;
  readonly views: LogViews;
  readonly #list = new IdList();

  constructor(tables: Tables, options: RetentionOptions) {
    this.#tables = tables;
    this.#now = options.now;
    this.#retention = new Retention(tables, options);
    this.views = new LogViews(tables, options);
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

  /** See ChangeNotes. */
  begin(set: number): LogEntry {
    return new LogEntry(this.#list, {
      state: () => this.state(set),
      views: this.views.of(set),
      put: (record, last) => this.#tables.changes.putSync(recordKey(set, last), record),
      now: this.#now,
      end: (state, rows) => {
        const isDue = this.#retention.isDue(set, state, rows);
        this.#put(set, isDue ? this.#pruned(set, state, rows()) : state);
      },
    });
  }

  /** In a transaction: everything changed. All places before now expire. */
  raiseFloor(set: number): void {
    const state = this.state(set);
    const last = state.last + 1;
    this.#retention.forget(set);
    this.#put(set, { ...state, last, floor: last });
  }

  /** In a transaction: forgets a set that nothing leads to any more. Its records are left for `sweep`. */
  forget(set: number): void {
    this.#retention.forget(set);
    this.views.forget(set);
    this.#tables.meta.removeSync(stateKey(set));
  }

  /**
   * In a transaction: removes the oldest records that are not to be kept. `rows`: the number of rows of the set. Returns
   * whether there were any.
   */
  prune(set: number, rows: number): boolean {
    const state = this.state(set);
    const pruned = this.#pruned(set, state, rows);
    if (pruned !== state) this.#put(set, pruned);
    return pruned !== state;
  }

  /** Whether `prune` would remove a record. */
  canPrune(set: number, rows: number): boolean {
    return this.#retention.prunable(set, this.state(set), rows, 1).keys.length > 0;
  }

  /**
   * The ids that changed after a number, at most `most`, without changes that a part does not show. Reads a piece of the
   * log: `next` tells how far.
   */
  read(set: number, after: number, most: number, part?: PartOfLog): LoggedIds {
    const found = new Map<string, Bookmark>();
    const wereInside = new Set<string>();
    let next = after;
    let seen = 0;
    const isWhole = walkLog(this.#tables, set, after + 1, (end, record) => {
      if (seen >= READ_AT_ONCE) return false;
      const { count } = headOf(record);
      let sequence = end - count;
      for (const { id, before } of idsOf(record)) {
        sequence++;
        seen++;
        if (sequence <= after) continue;
        const name = textOf(id);
        const inView = part && before && beforeInView(before, part.view);
        if (inView?.isSilent !== true) {
          if (found.size >= most && !found.has(name)) return false;
          found.set(name, id);
        }
        if (inView && !inView.isSilent && Buffer.compare(inView.digest, part.digest) === 0)
          wereInside.add(name);
        next = sequence;
      }
      return true;
    });
    return { ids: [...found.values()], wereInside, next: isWhole ? this.state(set).last : next };
  }

  /** Removes the oldest records that are not to be kept. Returns the state without them: the same where there are none. */
  #pruned(set: number, state: LogState, rows: number): LogState {
    const { keys, floor, ids } = this.#retention.prunable(set, state, rows);
    for (const key of keys) this.#tables.changes.removeSync(key);
    return keys.length > 0 ? { ...state, floor, ids } : state;
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
