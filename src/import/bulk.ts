import type { InsertResult, ItemStore, OnConflict } from '../store/store.ts';

/** A batch is written when it reaches this many rows or bytes. */
const BATCH_ROWS = 2_000;
const BATCH_BYTES = 4 * 1024 * 1024;

/** Rows on their way to the store, and their positions in the source. */
class Batch {
  readonly items: Uint8Array[] = [];
  readonly places: number[] = [];
  bytes = 0;

  get isFull(): boolean {
    return this.items.length >= BATCH_ROWS || this.bytes >= BATCH_BYTES;
  }
}

export interface BulkOptions {
  readonly store: Pick<ItemStore, 'insert'>;
  readonly onConflict: OnConflict;
  /** The maximum number of concurrent inserts. */
  readonly parallel: number;
  /** Called with the store's result for a batch, and the positions of its rows. */
  readonly onWritten: (result: InsertResult, places: readonly number[]) => void;
}

/**
 * Gathers rows into batches and writes a few of them at the same time. It holds at most one batch that is
 * being filled and `parallel` batches in transit. After the store has failed once, nothing more is written
 * and every call rejects with its error.
 */
export class BulkWriter {
  readonly #options: BulkOptions;
  readonly #underWay = new Set<Promise<void>>();
  #batch = new Batch();
  #failure: { readonly error: unknown } | null = null;

  constructor(options: BulkOptions) {
    this.#options = options;
  }

  /** Adds a row. When the row fills a batch, the promise resolves once that batch is being written. */
  add(place: number, item: Uint8Array): void | Promise<void> {
    this.#batch.items.push(item);
    this.#batch.places.push(place);
    this.#batch.bytes += item.length;
    return this.#batch.isFull ? this.#send() : undefined;
  }

  /** Writes the remaining rows. Resolves when every row is durable or refused. */
  async finish(): Promise<void> {
    if (this.#batch.items.length > 0) await this.#send();
    await this.settle();
    this.#throwFailure();
  }

  /**
   * Resolves when no insert is pending, whether it succeeded or failed. Rows that were not sent stay unsent.
   */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async #send(): Promise<void> {
    const batch = this.#batch;
    this.#batch = new Batch();
    while (this.#underWay.size >= this.#options.parallel) await Promise.race(this.#underWay);
    this.#throwFailure();
    const write = this.#write(batch).finally(() => this.#underWay.delete(write));
    this.#underWay.add(write);
  }

  /** Writes a batch. Never rejects: the next call throws the error. */
  async #write(batch: Batch): Promise<void> {
    const { store, onConflict, onWritten } = this.#options;
    try {
      onWritten(await store.insert(batch.items, onConflict), batch.places);
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
