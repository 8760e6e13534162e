import type { Collection } from '../store.ts';
import type { Core } from './core.ts';
import { SetFeed } from './feed.ts';
import { LoadGate } from './load-gate.ts';
import { SetIndexes } from './set-indexes.ts';
import { SetCounts } from './set-counts.ts';
import { SetLooks } from './set-looks.ts';
import type { OpenSetOptions, SetParts, SetShape } from './set-parts.ts';
import { SetReads } from './set-reads.ts';
import { SetWrites } from './set-writes.ts';
import { NEW } from './sets.ts';

/** An open set of rows, as the port wants it. */
export class OpenSet {
  readonly #parts: SetParts;
  readonly #gate: LoadGate;
  readonly indexes: SetIndexes;
  readonly #reads: SetReads;
  readonly #counts: SetCounts;
  readonly writes: SetWrites;
  readonly #feed: SetFeed | null;

  constructor(core: Core, shape: SetShape, options: OpenSetOptions) {
    const { sets, looks, writes, maintenance, reader, watch } = core;
    const { connection, secret } = core.file;
    const log = shape.hasChanges ? core.log : null;
    const parts: SetParts = {
      ...{ ...shape, ...options, connection, sets, log, looks, writes, maintenance, reader, watch, secret },
      sweep: () => core.sweep(),
      epoch: () => core.epoch,
    };
    this.#parts = parts;
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
    const { looks, writes, sets, name, label, indexes } = this.#parts;
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
