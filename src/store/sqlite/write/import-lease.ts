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

/** The right of this process to write rows into a set: alone when it fills side tables, else beside others that add rows. */
export class ImportLease {
  /** The set when the import began. */
  readonly set: CollectionRecord;
  readonly side: SideTables | undefined;
  readonly #core: Core;
  readonly #name: string;
  readonly #id: string;
  readonly #timer: NodeJS.Timeout;
  #isHeld = true;

  private constructor(core: Core, set: CollectionRecord, { id, side }: ImportRecord) {
    this.#core = core;
    this.#name = set.name;
    this.#id = id;
    this.set = set;
    this.side = side;
    // A renewal that fails is followed by another; a write then finds what became of the lease.
    this.#timer = setInterval(() => void this.renew(0).catch(() => undefined), RENEWED_AFTER_MS).unref();
  }

  /** Rejects with CommandRefusal when another import is in the way. `replaces`: the rows of the set are to go. */
  static async take(core: Core, { name, label }: CollectionShape, replaces: boolean): Promise<ImportLease> {
    await core.sweep();
    const { connection, log, sets, writes, options } = core;
    const { set, own } = await writes.run(() => {
      const set = sets.get(name);
      const now = options.wallClock();
      const others = (set.imports ?? []).filter((one) => isUnderWay(one, now));
      const rows = sets.rows(name);
      const isAlone = replaces || rows === 0;
      const other = isAlone ? others[0] : others.find(({ side }) => side);
      if (other) throw inTheWay(label, other);
      const numbers = isAlone ? [sets.takeNumber()] : [];
      for (const number of numbers) connection.exec(tablesSql(number, set.indexes));
      const side = { numbers, rows, of: set.number, after: log.state(set).last };
      const own: ImportRecord = {
        id: randomUUID(),
        holder: thisProcess(),
        until: now + LEASE_MS,
        ...(isAlone && { side }),
      };
      sets.put({ ...set, imports: [...others, own] });
      return { set, own };
    });
    return new ImportLease(core, set, own);
  }

  /** In a transaction: the set as it is. Throws CommandRefusal when the lease was taken for one of a process that ended. */
  held(): CollectionRecord {
    const set = this.#core.sets.get(this.#name);
    if (set.imports?.some(({ id }) => id === this.#id)) return set;
    throw new CommandRefusal(
      `This import into ${set.label} was taken for one whose process had ended, and its rows were removed: run it again.`,
    );
  }

  /** In a transaction: adds tables. Returns their number. */
  addTables(): number {
    const { connection, sets } = this.#core;
    const number = sets.takeNumber();
    connection.exec(tablesSql(number, this.set.indexes)); // as the others have them
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

  /** In the transaction that ends the import: the set without the lease. */
  ended(): CollectionRecord {
    const { imports = [], ...set } = this.held();
    const others = imports.filter(({ id }) => id !== this.#id);
    return others.length === 0 ? set : { ...set, imports: others };
  }

  /** Ends the lease. The side tables then are nobody's. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    this.#isHeld = false;
    const { sets, writes, looks } = this.#core;
    const isThere = (set = sets.get(this.#name)) => set.imports?.some(({ id }) => id === this.#id) ?? false;
    if (!(await looks.soon(isThere))) return;
    await writes.run(() => {
      if (isThere()) sets.put(this.ended());
    }, 'frees');
  }

  #put(set: CollectionRecord, change: (own: ImportRecord) => ImportRecord): void {
    const imports = set.imports?.map((one) => (one.id === this.#id ? change(one) : one));
    this.#core.sets.put({ ...set, imports });
  }
}

/** The refusal of what cannot be done beside another import. */
export function inTheWay(label: string, { holder: { pid }, side }: ImportRecord): CommandRefusal {
  const does = side ? 'fills' : 'adds rows to';
  return new CommandRefusal(
    `Another import (process ${pid}) ${does} ${label}: wait for its end, or end it, and run this one again.`,
  );
}
