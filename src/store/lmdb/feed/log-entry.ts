import type { Value } from '../keys.ts';
import type { LogState } from './log.ts';
import type { IdList } from './record.ts';

interface LogEntryOptions {
  /** Reads the state of the log. */
  readonly state: () => LogState;
  /** Writes a record. `last`: the sequence number of its last id. */
  readonly put: (record: Uint8Array, last: number) => void;
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

  /** Notes that a row was written or removed. `id`: the value of its `_id`. */
  add(id: Value): void {
    this.#list.add(id);
    if (this.#list.isFull) this.#flush();
  }

  /** Notes that a row took the place of another one, whose `_id` may be of another type: 7 and 7.0 are one row. */
  addReplacement(id: Value, before: Value): void {
    if (id.type !== before.type || Buffer.compare(id.bytes, before.bytes) !== 0) this.add(before);
    this.add(id);
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
