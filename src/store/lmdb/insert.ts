import { keyRow } from './row.ts';
import type { KeyedRow } from './row.ts';
import type { InsertResult, OnConflict } from '../store.ts';

/** The outcome of a row. `refused`: its id already exists. */
export type Outcome = 'written' | 'skipped' | 'refused';

/** A row to write, and the insert that it belongs to. */
export interface Step {
  readonly insert: LmdbInsert;
  readonly row: KeyedRow;
  /** The row's index in the call. */
  readonly index: number;
}

/** One call of `insert` under way. Its rows may take several transactions. */
export class LmdbInsert {
  readonly onConflict: OnConflict;
  readonly result: Promise<InsertResult>;
  readonly #steps: Step[] = [];
  readonly #refused: { readonly index: number; readonly reason: string }[] = [];
  #noted = 0;
  #written = 0;
  #skipped = 0;
  #failed = false;
  #resolve!: (result: InsertResult) => void;
  #reject!: (reason: unknown) => void;

  constructor(documents: readonly Uint8Array[], onConflict: OnConflict) {
    this.onConflict = onConflict;
    documents.forEach((document, index) => {
      const row = keyRow(document);
      if (typeof row === 'string') this.#refused.push({ index, reason: row });
      else this.#steps.push({ insert: this, row, index });
    });
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#settle();
  }

  get isDone(): boolean {
    return this.#failed || this.#noted === this.#steps.length;
  }

  /** The next rows that are not on disk yet, at most `most`. */
  stepsLeft(most: number): readonly Step[] {
    return this.#steps.slice(this.#noted, this.#noted + most);
  }

  /** Records the outcome of the next row, which is on disk now. The last row resolves the call. */
  note(index: number, outcome: Outcome): void {
    this.#noted++;
    if (outcome === 'written') this.#written++;
    else if (outcome === 'skipped') this.#skipped++;
    else this.#refused.push({ index, reason: 'an item with its _id exists' });
    this.#settle();
  }

  /** Rejects the call. Rows of earlier transactions stay written. */
  fail(reason: unknown): void {
    this.#failed = true;
    this.#reject(reason);
  }

  #settle(): void {
    if (!this.isDone) return;
    const refused = this.#refused.sort((a, b) => a.index - b.index);
    this.#resolve({ written: this.#written, skipped: this.#skipped, refused });
  }
}
