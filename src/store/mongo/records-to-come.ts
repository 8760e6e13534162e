import type { Batch } from '../batch.ts';
import type { Bookmark } from '../bookmark.ts';
import type { Slots } from '../slots.ts';
import type { From, Plan, RowReader, Size } from '../store.ts';
import { BatchBuilder } from './batch-builder.ts';
import { describeCollection } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { translate } from './errors.ts';

/**
 * Reads a collection of records that is created by its first write only. Until it exists there are no records, and no
 * read creates it.
 */
export class RecordsToCome implements RowReader {
  readonly #rows: RowReader;
  readonly #connection: MongoConnection;
  readonly #collection: string;
  readonly #slots: Slots;
  #exists = false;

  /** `rows` reads the collection once it exists. */
  constructor(rows: RowReader, connection: MongoConnection, collection: string, slots: Slots) {
    this.#rows = rows;
    this.#connection = connection;
    this.#collection = collection;
    this.#slots = slots;
  }

  async read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    if (await this.#isThere()) return this.#rows.read(plan, from, size, signal);
    signal.throwIfAborted();
    return new BatchBuilder(plan, size).toBatch(this.#slots, false);
  }

  async get(id: Bookmark, signal: AbortSignal): Promise<Batch | null> {
    return (await this.#isThere()) ? this.#rows.get(id, signal) : null;
  }

  async confirm(batch: Pick<Batch, 'readBy'>, plan: Plan, signal: AbortSignal): Promise<void> {
    if (await this.#isThere()) await this.#rows.confirm(batch, plan, signal);
  }

  /** A collection that existed once and is missing now is a fault, which the reader of rows reports. */
  async #isThere(): Promise<boolean> {
    if (this.#exists) return true;
    try {
      this.#exists = (await describeCollection(this.#connection, this.#collection)) !== null;
    } catch (error) {
      throw translate(error);
    }
    return this.#exists;
  }
}
