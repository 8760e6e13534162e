import type { InsertResult, ItemStore, OnConflict } from '../store/store.ts';

/** A batch is written when it has this many rows or bytes. */
const BATCH_ROWS = 2_000;
const BATCH_BYTES = 4 * 1024 * 1024;

/** Rows on their way to the store, and where each stands in its source. */
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
  /** Inserts under way at once. */
  readonly parallel: number;
  /** Called with what the store answered to a batch, and the places of its rows. */
  readonly onWritten: (result: InsertResult, places: readonly number[]) => void;
}

/**
 * Gathers rows into batches and writes them, a few at once. It never holds more than one batch being filled and
 * `parallel` under way. After the store failed once, nothing more is written and every call rejects with its error.
 */
export class BulkWriter {
  readonly #options: BulkOptions;
  readonly #underWay = new Set<Promise<void>>();
  #batch = new Batch();
  #failure: { readonly error: unknown } | null = null;

  constructor(options: BulkOptions) {
    this.#options = options;
  }

  /** Takes a row. When it makes a batch full, the promise resolves once that batch is on its way. */
  add(place: number, item: Uint8Array): void | Promise<void> {
    this.#batch.items.push(item);
    this.#batch.places.push(place);
    this.#batch.bytes += item.length;
    return this.#batch.isFull ? this.#send() : undefined;
  }

  /** Writes what is left; resolves when every row is durable or refused. */
  async finish(): Promise<void> {
    if (this.#batch.items.length > 0) await this.#send();
    await this.settle();
    this.#throwFailure();
  }

  /** Resolves when nothing is under way, whatever became of it; what was not sent stays unsent. */
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

  /** Never rejects: the failure is kept for the next call. */
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
