import type { Change, Changed } from '../records.ts';
import type { AddedIndex, Collection, Count } from '../store.ts';
import type { Slots } from '../slots.ts';
import type { Core } from './core.ts';
import type { Written } from './change-set.ts';
import { SetFeed } from './feed.ts';
import { LoadGate } from './load-gate.ts';
import { SetIndexes } from './set-indexes.ts';
import { SetCounts } from './set-counts.ts';
import { SetLooks } from './set-looks.ts';
import { SetReads } from './set-reads.ts';
import { SetWrites } from './set-writes.ts';
import type { ChangeFeed, Part, PartFeed } from '../change-feed.ts';

/** What a set is, beyond its rows. */
export interface SetShape extends Pick<Written, 'refusalOf' | 'conflict'> {
  /** The name in the file. */
  readonly name: string;
  /** The name for messages. */
  readonly label: string;
  /** The paths of indexes that the set must have. */
  readonly indexes: readonly (readonly string[])[];
  /** Whether its changes are noted for readers. */
  readonly hasChanges: boolean;
}

export interface OpenSetOptions {
  readonly slots: Slots;
  readonly transactionRows?: number | undefined;
  readonly now: () => number;
  readonly onWarning: (message: string) => void;
}

/** An open set of rows, as the port wants it: with errors of SQLite translated. */
export class OpenSet {
  readonly #core: Core;
  readonly #shape: SetShape;
  readonly #gate: LoadGate;
  readonly #indexes: SetIndexes;
  readonly #reads: SetReads;
  readonly #counts: SetCounts;
  readonly #writes: SetWrites;
  readonly #feed: SetFeed | null;

  constructor(core: Core, shape: SetShape, options: OpenSetOptions) {
    const { sets, looks, writes, maintenance, reader, watch } = core;
    const { connection } = core.file;
    this.#core = core;
    this.#shape = shape;
    const log = shape.hasChanges ? core.log : null;
    const sweep = () => core.sweep();
    const shared = { ...shape, ...options, connection, sets, log, looks, writes, maintenance, reader, sweep };
    const onDiscarded = () => void sweep().catch(() => undefined); // the next start tries again
    const gate = new LoadGate({ ...shared, onDiscarded });
    const indexes = new SetIndexes({ ...shared, gate });
    const setLooks = new SetLooks({ ...shared, gate, onLook: (set) => indexes.buildLater(set) });
    const reads = new SetReads({ ...shared, gate, setLooks });
    [this.#gate, this.#indexes, this.#reads] = [gate, indexes, reads];
    this.#counts = new SetCounts({ ...shared, gate, setLooks, reads });
    this.#writes = new SetWrites({ ...shared, gate });
    const present = setLooks.present.bind(setLooks);
    const places = { epoch: () => core.epoch, secret: () => core.secret };
    this.#feed = log && new SetFeed({ ...shared, ...places, log, watch, present });
  }

  /** Makes the set and the indexes that are missing, and undoes a load whose process has ended. */
  async begin(): Promise<void> {
    const { looks, writes, sets } = this.#core;
    const { name, label, indexes } = this.#shape;
    const isMissing = await looks.soon(() => sets.find(name) === null);
    if (isMissing)
      await writes.run(() => {
        const records = indexes.map((paths, n) => ({ number: n + 1, paths, builtTo: null }));
        if (!sets.find(name)) sets.create({ name, label, indexes: records });
      });
    if (!(await this.#gate.recover())) this.#gate.watch();
    await this.#indexes.declare(indexes);
    await looks.soon(() => this.#indexes.buildLater(sets.get(name)));
  }

  declare(indexes: readonly (readonly string[])[]): Promise<void> {
    return this.#indexes.declare(indexes);
  }

  /** See Collection. */
  rows(): Collection {
    const told = this.#core.told.bind(this.#core);
    const [reads, counts, writes, gate] = [this.#reads, this.#counts, this.#writes, this.#gate];
    return {
      read: (...call) => told(async () => reads.read(...call)),
      get: (...call) => told(reads.get(...call)),
      confirm: (_, plan) => told(reads.confirm(plan)),
      count: (...call) => told(async () => counts.count(...call)),
      split: (...call) => told(counts.split(...call)),
      identity: () => told(reads.identity()),
      pointInTime: () => Promise.resolve(null),
      indexes: () => told(reads.indexes()),
      holds: (...call) => told(counts.holds(...call)),
      nextValue: (...call) => told(counts.nextValue(...call)),
      insert: (...call) => told(writes.insert(...call)),
      remove: (...call) => told(writes.remove(...call)),
      load: (...call) => told(gate.load(...call)),
      ...(this.#feed && { changes: this.#toldFeed(this.#feed) }),
    };
  }

  clear(signal: AbortSignal): Promise<Count> {
    return this.#core.told(this.#writes.clear(signal));
  }

  change(id: string, change: Change): Promise<Changed> {
    return this.#core.told(async () => this.#writes.change(id, change));
  }

  addIndex(...call: Parameters<SetIndexes['add']>): Promise<AddedIndex> {
    return this.#core.told(this.#indexes.add(...call));
  }

  close(): Promise<void> {
    return this.#indexes.close();
  }

  #toldFeed(feed: SetFeed): ChangeFeed {
    return { ...this.#toldPart(feed), within: (part: Part) => this.#toldPart(feed.within(part)) };
  }

  #toldPart(feed: PartFeed): PartFeed {
    const core = this.#core;
    return {
      now: (signal) => core.told(feed.now(signal)),
      at: (time) => feed.at(time),
      read: (...call) => core.told(feed.read(...call)),
      refusal: (signal) => feed.refusal(signal),
      rows: async function* (...call) {
        const batches = feed.rows(...call)[Symbol.asyncIterator]();
        try {
          for (;;) {
            const step = await core.told(batches.next());
            if (step.done === true) return;
            yield step.value;
          }
        } finally {
          await batches.return?.();
        }
      },
    };
  }
}
