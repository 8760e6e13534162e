import { randomUUID } from 'node:crypto';
import { CommandRefusal } from '../../../base/errors.ts';
import { thisProcess } from '../../writes/holder.ts';
import type { Core } from '../core.ts';
import { tablesSql } from '../file/layout.ts';
import {
  isUnderWay,
  type ImportRecord,
  type CollectionRecord,
  type CollectionShape,
  type SideTables,
} from '../file/collections.ts';

/** For how long a process counts as running when that cannot be told otherwise, and how often it says so. Milliseconds. */
const LEASE_MS = 60_000;
const RENEWED_AFTER_MS = 15_000;

/** The right of this process to write rows into a collection: alone when it fills side tables, else beside others that add rows. */
export class ImportLease {
  /** The collection when the import began. */
  readonly collection: CollectionRecord;
  readonly side: SideTables | undefined;
  readonly #core: Core;
  readonly #name: string;
  readonly #id: string;
  readonly #timer: NodeJS.Timeout;
  #isHeld = true;

  private constructor(core: Core, collection: CollectionRecord, { id, side }: ImportRecord) {
    this.#core = core;
    this.#name = collection.name;
    this.#id = id;
    this.collection = collection;
    this.side = side;
    // A renewal that fails is followed by another; a write then finds what became of the lease.
    this.#timer = setInterval(() => void this.renew(0).catch(() => undefined), RENEWED_AFTER_MS).unref();
  }

  /** Rejects with CommandRefusal when another import is in the way. `replaces`: the rows of the collection are to go. */
  static async take(core: Core, { name, label }: CollectionShape, replaces: boolean): Promise<ImportLease> {
    await core.sweep();
    const { connection, log, collections, writes, options } = core;
    const { collection, own } = await writes.run(() => {
      const collection = collections.get(name);
      const now = options.wallClock();
      const others = (collection.imports ?? []).filter((one) => isUnderWay(one, now));
      const rows = collections.rows(name);
      const isAlone = replaces || rows === 0;
      const other = isAlone ? others[0] : others.find(({ side }) => side);
      if (other) throw inTheWay(label, other);
      const numbers = isAlone ? [collections.takeNumber()] : [];
      for (const number of numbers) connection.exec(tablesSql(number, collection.indexes));
      const side = { numbers, rows, of: collection.number, after: log.state(collection).last };
      const own: ImportRecord = {
        id: randomUUID(),
        holder: thisProcess(),
        until: now + LEASE_MS,
        ...(isAlone && { side }),
      };
      collections.put({ ...collection, imports: [...others, own] });
      return { collection, own };
    });
    return new ImportLease(core, collection, own);
  }

  /** In a transaction: the collection as it is. Throws CommandRefusal when the lease was taken for one of a process that ended. */
  held(): CollectionRecord {
    const collection = this.#core.collections.get(this.#name);
    if (collection.imports?.some(({ id }) => id === this.#id)) return collection;
    throw new CommandRefusal(
      `This import into ${collection.label} was taken for one whose process had ended, and its rows were removed: run it again.`,
    );
  }

  /** In a transaction: adds tables. Returns their number. */
  addTables(): number {
    const { connection, collections } = this.#core;
    const number = collections.takeNumber();
    connection.exec(tablesSql(number, this.collection.indexes)); // as the others have them
    this.#put(this.held(), ({ side, ...own }) => ({
      ...own,
      ...(side && { side: { ...side, numbers: [...side.numbers, number] } }),
    }));
    return number;
  }

  /** Says that this process runs, also while it does what takes `ms` and lets it write nothing else. */
  async renew(ms: number): Promise<void> {
    const until = this.#core.options.wallClock() + LEASE_MS + ms;
    await this.#core.writes.run(() => {
      if (this.#isHeld) this.#put(this.held(), (own) => ({ ...own, until: Math.max(own.until, until) }));
    });
  }

  /** In the transaction that ends the import: the collection without the lease. */
  ended(): CollectionRecord {
    const { imports = [], ...collection } = this.held();
    const others = imports.filter(({ id }) => id !== this.#id);
    return others.length === 0 ? collection : { ...collection, imports: others };
  }

  /** Ends the lease. The side tables then are nobody's. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    this.#isHeld = false;
    const { collections, writes, looks } = this.#core;
    const isThere = (collection = collections.get(this.#name)) =>
      collection.imports?.some(({ id }) => id === this.#id) ?? false;
    if (!(await looks.soon(isThere))) return;
    await writes.run(() => {
      if (isThere()) collections.put(this.ended());
    }, 'small');
  }

  #put(collection: CollectionRecord, change: (own: ImportRecord) => ImportRecord): void {
    const imports = collection.imports?.map((one) => (one.id === this.#id ? change(one) : one));
    this.#core.collections.put({ ...collection, imports });
  }
}

/** The refusal of what cannot be done beside another import. */
export function inTheWay(label: string, { holder: { pid }, side }: ImportRecord): CommandRefusal {
  const does = side ? 'fills' : 'adds rows to';
  return new CommandRefusal(
    `Another import (process ${pid}) ${does} ${label}: wait for its end, or end it, and run this one again.`,
  );
}
