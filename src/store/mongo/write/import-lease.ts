import { randomUUID } from 'node:crypto';
import type { Document } from 'mongodb';
import { CommandRefusal } from '../../../base/errors.ts';
import { isRunning, thisProcess, type Holder } from '../../writes/holder.ts';
import { documentsOf, MAJORITY, ON_PRIMARY } from '../commands.ts';
import type { MongoConnection } from '../connection.ts';
import { CODES, serverCodeOf } from '../errors.ts';

/** A document for each collection whose rows an import replaces. It is in the same database, and no resource. */
const LEASES = 'sluice.imports';
/** For how long a process counts as running when that cannot be told otherwise, and how often it says so. Milliseconds. */
const LEASE_MS = 60_000;
const RENEWED_AFTER_MS = 15_000;

/** The right of this process alone to replace the rows of a collection. The clock is that of the server. */
export class ImportLease {
  readonly #connection: MongoConnection;
  readonly #collection: string;
  readonly #id: string;
  readonly #timer: NodeJS.Timeout;

  private constructor(connection: MongoConnection, collection: string, id: string) {
    this.#connection = connection;
    this.#collection = collection;
    this.#id = id;
    // A renewal that fails is followed by another, and the end of the import finds what became of the lease.
    this.#timer = setInterval(() => void this.assertHeld().catch(() => undefined), RENEWED_AFTER_MS).unref();
  }

  /** Rejects with CommandRefusal when another import replaces the rows. */
  static async take(connection: MongoConnection, collection: string): Promise<ImportLease> {
    const id = randomUUID();
    const lease = new ImportLease(connection, collection, id);
    try {
      await lease.#take();
      return lease;
    } catch (error) {
      clearInterval(lease.#timer);
      throw error;
    }
  }

  /** Rejects with CommandRefusal when an import replaces the rows. Nothing is written for that. */
  static async assertNone(connection: MongoConnection, collection: string): Promise<void> {
    const filter = { _id: collection, $expr: { $gt: ['$until', '$$NOW'] } };
    const [other] = await documentsOf(connection, { find: LEASES, filter, limit: 1 }, ON_PRIMARY);
    const holder = other?.holder as Holder | undefined;
    if (holder && isRunning(holder) !== false) throw inTheWay(collection, holder);
  }

  /** Renews the lease. Rejects with CommandRefusal when it was taken for one of a process that ended. */
  async assertHeld(): Promise<void> {
    if (await this.#write({ id: this.#id })) return;
    throw new CommandRefusal(
      `This import was taken for one whose process had ended, by another into '${this.#collection}': run it again.`,
    );
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    const deletes = [{ q: { _id: this.#collection, id: this.#id }, limit: 1 }];
    await this.#connection.run({ delete: LEASES, deletes, writeConcern: MAJORITY }, ON_PRIMARY);
  }

  async #take(): Promise<void> {
    try {
      await this.#write({ id: this.#id }, true);
    } catch (error) {
      if (serverCodeOf(error) !== CODES.duplicateKey) throw error;
      if (await this.#write({ $expr: { $lt: ['$until', '$$NOW'] } })) return;
      const find = { find: LEASES, filter: { _id: this.#collection }, limit: 1 };
      const [other] = await documentsOf(this.#connection, find, ON_PRIMARY);
      if (!other) return this.#take(); // it has just ended
      const holder = other.holder as Holder;
      if (isRunning(holder) === false && (await this.#write({ id: other.id as string }))) return;
      throw inTheWay(this.#collection, holder);
    }
  }

  /** Makes the lease of the collection that of this process. Returns whether there is one for which the condition holds. */
  async #write(condition: Document, upsert = false): Promise<boolean> {
    const until = { $add: ['$$NOW', LEASE_MS] };
    const command = {
      findAndModify: LEASES,
      query: { _id: this.#collection, ...condition },
      update: [{ $set: { id: this.#id, holder: { $literal: thisProcess() }, until } }],
      upsert,
      new: true,
      writeConcern: MAJORITY,
    };
    const { value } = await this.#connection.run(command, ON_PRIMARY);
    return Boolean(value);
  }
}

function inTheWay(collection: string, { pid }: Holder): CommandRefusal {
  return new CommandRefusal(
    `Another import (process ${pid}) replaces the rows of '${collection}': wait for its end, or end it, and run this one again. ` +
      'When its process is gone from another machine, that takes a minute.',
  );
}
