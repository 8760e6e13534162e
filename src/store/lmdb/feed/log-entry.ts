import type { Value } from '../../keys.ts';
import { beforeOf, type RowChange } from './before.ts';
import type { LogState } from './log.ts';
import type { IdList } from './record.ts';
import type { ViewRecord } from './views.ts';

interface LogEntryOptions {
  /** Reads the state of the log. */
  readonly state: () => LogState;
  /** Writes a record. `last`: the sequence number of its last id. */
  readonly put: (record: Uint8Array, last: number) => void;
  /** For which the log notes what rows were. */
  readonly views: readonly ViewRecord[];
  readonly now: () => number;
  /** Writes the state, which has all records of the transaction. `rows` returns the number of rows of the set. */
  readonly end: (state: LogState, rows: () => number) => void;
}

/** The changes of one transaction. */
export class LogEntry {
  readonly #list: IdList;
  readonly #options: LogEntryOptions;
  /** Null: nothing was written. */
  #state: LogState | null = null;

  constructor(list: IdList, options: LogEntryOptions) {
    this.#list = list;
    this.#options = options;
    list.begin();
  }

  /** Notes a row that was not there before. `id`: the value of its `_id`. */
  addNew(id: Value): void {
    this.#add(id, null);
  }

  /** Notes that a row was removed. */
  addRemoved(id: Value, before: Uint8Array): void {
    this.#add(id, { before, after: null });
  }

  /**
   * Notes that a row took the place of another one. The `_id` of that one may be of another type: 7 and 7.0 are one row.
   */
  addReplaced(
    id: Value,
    idBefore: Value,
    { before, after }: { before: Uint8Array; after: Uint8Array },
  ): void {
    if (id.type === idBefore.type && Buffer.compare(id.bytes, idBefore.bytes) === 0)
      this.#add(id, { before, after });
    else {
      this.#add(idBefore, { before, after: null });
      this.#add(id, null);
    }
  }

  #add(id: Value, change: RowChange | null): void {
    const { views } = this.#options;
    this.#list.add(id, change && views.length > 0 ? beforeOf(views, change) : null);
    if (this.#list.isFull) this.#flush();
  }

  /** Writes what was noted. `rows` returns the number of rows of the set. */
  end(rows: () => number): void {
    if (this.#list.count > 0) this.#flush();
    if (this.#state) this.#options.end(this.#state, rows);
  }

  #flush(): void {
    const { state, put, now } = this.#options;
    const { count } = this.#list;
    const before = this.#state ?? state();
    const last = before.last + count;
    put(this.#list.recordAt(now()), last);
    this.#state = { ...before, last, ids: before.ids + count };
    this.#list.begin();
  }
}
