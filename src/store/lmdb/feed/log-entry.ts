import type { Value } from '../keys.ts';
import type { IdList } from './record.ts';

interface LogEntryOptions {
  readonly put: (record: Uint8Array, count: number) => void;
  readonly now: () => number;
  readonly end: (rows: number) => void;
}

/** The changes of one transaction. */
export class LogEntry {
  readonly #list: IdList;
  readonly #options: LogEntryOptions;
  #isEmpty = true;

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
    if (!this.#isEmpty) this.#options.end(rows());
  }

  #flush(): void {
    this.#options.put(this.#list.recordAt(this.#options.now()), this.#list.count);
    this.#list.begin();
    this.#isEmpty = false;
  }
}
