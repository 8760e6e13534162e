import { documentAt, storedRow } from './checked-rows.ts';
import type { Connection } from './connection.ts';
import { isDamage } from './errors.ts';
import { latestEpoch, newEpoch } from './layout.ts';
import type { ChangeLog, LogOptions } from './log.ts';
import type { Collections } from './collections.ts';

/**
 * The most epochs that a file knows: a week of processes that start each minute and write. Places of epochs before them
 * have expired, like those that are older than the changes that are kept.
 */
const MOST_EPOCHS = 10_000;

/**
 * The epochs of the file's history. Each process that opens the file begins one in its first transaction, however many
 * write at once: changes and places belong to the epoch that was begun last, whoever makes them. The file has what a reader
 * saw when it knows the epoch of its place, and that epoch had so many changes when the next one began. A copy of the
 * file that is written elsewhere, or put back, goes on in another epoch, so it takes no place of what it has not got.
 * All calls are made in a look or a transaction.
 */
export class Epochs {
  readonly #connection: Connection;
  readonly #collections: Collections;
  readonly #log: ChangeLog;
  readonly #options: LogOptions;
  #own: string | null = null;

  constructor(connection: Connection, collections: Collections, log: ChangeLog, options: LogOptions) {
    this.#connection = connection;
    this.#collections = collections;
    this.#log = log;
    this.#options = options;
  }

  latest(): string {
    return latestEpoch(this.#connection);
  }

  /** The last change of a collection's tables that belongs to an epoch or those before it. Null: the file does not know it. */
  endOf(epoch: string, collection: number): number | null {
    const known = this.#connection.get('select n from epochs where name = ?', epoch);
    if (!known) return null;
    const next = this.#connection.get(
      'select lasts from epochs where n > ? order by n limit 1',
      known.n ?? null,
    );
    if (!next) return Infinity;
    const lasts = Buffer.from(documentAt(next, 'lasts')).toString();
    return (JSON.parse(lasts) as Partial<Record<number, number>>)[collection] ?? null;
  }

  /** To be called first in each transaction. Begins the epoch of this process, unless the file has it. */
  begin(): void {
    const { wallClock, ttlMs } = this.#options;
    const connection = this.#connection;
    if (this.#own !== null && connection.get('select 1 from epochs where name = ?', this.#own)) return;
    // Never the name before: the transaction that began it was undone, or the file is another one.
    this.#own = newEpoch();
    const before = connection.get('select n, begun from epochs where n = (select max(n) from epochs)');
    const n = Number(before?.n ?? 0) + 1;
    const now = Math.max(wallClock(), Number(before?.begun ?? 0));
    connection.run('insert into epochs values (?, ?, ?, ?)', n, this.#own, now, this.#lasts());
    // An epoch ends when the next one begins.
    const ended = connection.get('select max(n) n from epochs where begun < ?', now - ttlMs)?.n;
    connection.run('delete from epochs where n < ?', Math.max(Number(ended ?? 0), n - MOST_EPOCHS + 1));
  }

  /** The numbers of the last changes by those of the collections, with a checksum. */
  #lasts(): Uint8Array {
    const lasts: Record<number, number> = {};
    for (const name of this.#collections.names()) {
      const collection = this.#collections.get(name);
      try {
        lasts[collection.number] = this.#log.state(collection).last;
      } catch (error) {
        if (!isDamage(error)) throw error; // else the places of this log alone expire
      }
    }
    return storedRow(Buffer.from(JSON.stringify(lasts)));
  }
}
