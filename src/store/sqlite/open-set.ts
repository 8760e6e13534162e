import type { Collection } from '../store.ts';
import type { Slots } from '../slots.ts';
import type { Core } from './core.ts';
import type { Connection } from './connection.ts';
import { SetFeed } from './feed.ts';
import { LoadGate } from './load-gate.ts';
import type { ChangeLog } from './log.ts';
import { SetIndexes } from './set-indexes.ts';
import { SetCounts } from './set-counts.ts';
import { SetLooks } from './set-looks.ts';
import { SetReads } from './set-reads.ts';
import { SetWrites } from './set-writes.ts';
import { NEW } from './sets.ts';

/** What a set is, beyond its rows. */
export interface SetShape {
  /** The name in the file. */
  readonly name: string;
  /** The name for messages. */
  readonly label: string;
  /** The paths of indexes that the set must have. */
  readonly indexes: readonly (readonly string[])[];
  /** Whether its changes are noted for readers. */
  readonly hasChanges: boolean;
  /** Why the set refuses a row, beyond what every set does. Null: it does not. */
  readonly refusalOf: (document: Uint8Array) => string | null;
  /** Why a row is refused whose id exists. */
  readonly conflict: string;
}

export interface OpenSetOptions {
  readonly slots: Slots;
  /** Rows per transaction, 512 by default. */
  readonly transactionRows?: number | undefined;
  /** A clock in milliseconds. */
  readonly now: () => number;
  readonly onWarning: (message: string) => void;
}

type Shared = Pick<Core, 'sets' | 'looks' | 'writes' | 'maintenance' | 'reader' | 'watch'>;

/** A set, and what the parts of an open set share. */
export interface SetParts extends SetShape, OpenSetOptions, Shared {
  readonly connection: Connection;
  /** Null: no one reads the changes of the set. */
  readonly log: ChangeLog | null;
  /** Frees the space of discarded tables. */
  readonly sweep: () => Promise<void>;
  /** What places are made with: the epoch of the file's history and the secret of sealed places. */
  readonly epoch: () => string;
  readonly secret: Uint8Array;
}

/** An open set of rows, as the port wants it. */
export class OpenSet {
  readonly #core: Core;
  readonly #shape: SetShape;
  readonly #gate: LoadGate;
  readonly indexes: SetIndexes;
  readonly #reads: SetReads;
  readonly #counts: SetCounts;
  readonly writes: SetWrites;
  readonly #feed: SetFeed | null;

  constructor(core: Core, shape: SetShape, options: OpenSetOptions) {
    const { sets, looks, writes, maintenance, reader, watch } = core;
    const { connection, secret } = core.file;
    this.#core = core;
    this.#shape = shape;
    const log = shape.hasChanges ? core.log : null;
    const parts: SetParts = {
      ...{ ...shape, ...options, connection, sets, log, looks, writes, maintenance, reader, watch, secret },
      sweep: () => core.sweep(),
      epoch: () => core.epoch,
    };
    this.#gate = new LoadGate(parts);
    this.indexes = new SetIndexes(parts, this.#gate);
    const setLooks = new SetLooks(parts, this.#gate, this.indexes);
    this.#reads = new SetReads(parts, setLooks);
    this.#counts = new SetCounts(parts, setLooks, this.#reads);
    this.writes = new SetWrites(parts, this.#gate);
    this.#feed = log && new SetFeed(parts, log, setLooks, this.#reads);
  }

  /** Makes the set and the indexes that are missing, and undoes a load whose process has ended. */
  async begin(): Promise<void> {
    const { looks, writes, sets } = this.#core;
    const { name, label, indexes } = this.#shape;
    const records = indexes.map((paths, n) => ({ number: n + 1, paths, builtTo: null }));
    const isMissing = await looks.soon(() => sets.find(name) === null);
    if (isMissing)
      await writes.run(() => sets.find(name) ?? sets.create({ ...NEW, name, label, indexes: records }));
    await this.#gate.recover();
    await this.indexes.declare(indexes);
    await looks.soon(() => this.indexes.buildLater(sets.get(name)));
  }

  /** See OwnedCollection. */
  load(...call: Parameters<LoadGate['load']>) {
    return this.#gate.load(...call);
  }

  /** See Collection. */
  rows(): Collection {
    const [reads, counts] = [this.#reads, this.#counts];
    return {
      read: async (...call) => reads.read(...call),
      describe: () => reads.describe(),
      count: async (...call) => counts.count(...call),
      split: (...call) => counts.split(...call),
      nextValue: (...call) => counts.nextValue(...call),
      ...(this.#feed && { changes: this.#feed }),
    };
  }
}
