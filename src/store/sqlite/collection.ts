import type { Description, OwnedCollection } from '../collection.ts';
import type { Records } from '../records.ts';
import { CollectionLooks } from './read/collection-looks.ts';
import type { Core } from './core.ts';
import { Counts } from './read/counts.ts';
import { dropCollection, removeIndex, renameCollection } from './write/drop.ts';
import { Feed } from './changes/feed.ts';
import { Indexes } from './write/indexes.ts';
import { Reads } from './read/reads.ts';
import { openSnapshot } from './snapshot.ts';
import { RowWrites } from './write/row-writes.ts';
import { NEW, RESOURCE, type CollectionShape } from './file/collections.ts';

/**
 * One collection of the file as the port has it: rows, records, or both. All who open the collection share it. What does the work of each
 * method is one of its parts. The methods are properties, so that a spread takes them over (telemetry/timed-store.ts).
 */
export class SqliteCollection implements OwnedCollection, Records {
  readonly #core: Core;
  readonly #indexes: Indexes;
  readonly #looks: CollectionLooks;
  readonly #reads: Reads;
  readonly #counts: Counts;
  readonly #writes: RowWrites;
  readonly changes: Feed | undefined;

  private constructor(core: Core, shape: CollectionShape) {
    this.#core = core;
    this.#indexes = new Indexes(core, shape.name);
    this.#looks = new CollectionLooks(core, shape, this.#indexes);
    this.#reads = new Reads(this.#looks);
    this.#counts = new Counts(this.#looks, this.#reads);
    this.#writes = new RowWrites(core, shape);
    this.changes = shape.hasChanges ? new Feed(this.#looks, this.#reads) : undefined;
  }

  /** Opens a collection of rows. Makes it and the indexes that are missing. */
  static async open(core: Core, shape: CollectionShape): Promise<SqliteCollection> {
    const { looks, writes, collections } = core;
    const { name, label, isUnfilled } = shape;
    const collection = new SqliteCollection(core, shape);
    if (await looks.soon(() => collections.find(name) === null)) {
      const indexes = shape.indexes.map((paths, n) => ({ number: n + 1, paths, builtTo: null }));
      await writes.run(
        () => collections.find(name) ?? collections.create({ ...NEW, name, label, isUnfilled, indexes }),
        'small',
      );
    }
    await collection.declare(shape.indexes);
    await looks.soon(() => collection.#looks.current());
    return collection;
  }

  readonly read: Records['read'] = (...call) => this.#reads.read(...call);

  readonly describe = (): Promise<Description> =>
    this.#core.looks.soon(() => {
      const { identity, indexes } = this.#looks.current();
      return { identity, indexes: this.#indexes.listOf(indexes), now: null };
    });

  readonly snapshot: NonNullable<OwnedCollection['snapshot']> = (signal) =>
    openSnapshot(this.#core, this.#looks.shape, signal);

  readonly count: Records['count'] = (...call) => this.#counts.count(...call);
  readonly split: Records['split'] = (...call) => this.#counts.split(...call);
  readonly nextValue: Records['nextValue'] = (...call) => this.#counts.nextValue(...call);
  readonly insert: OwnedCollection['insert'] = (...call) => this.#writes.insert(...call);
  readonly remove: OwnedCollection['remove'] = (...call) => this.#writes.remove(...call);
  readonly clear: OwnedCollection['clear'] = (...call) => this.#writes.clear(...call);
  readonly fill: OwnedCollection['fill'] = (...call) => this.#writes.fill(this, ...call);
  readonly change: Records['change'] = (...call) => this.#writes.change(...call);
  readonly addIndex: Records['addIndex'] = (...call) => this.#indexes.add(...call);

  readonly removeIndex = (paths: readonly string[]): Promise<void> =>
    removeIndex(this.#core, this.#looks.shape, paths);
  readonly drop = (): Promise<void> => dropCollection(this.#core, this.#looks.shape);
  readonly rename = (to: string): Promise<void> =>
    renameCollection(this.#core, this.#looks.shape, { name: RESOURCE + to, label: to });

  /** Adds the indexes that the collection lacks. */
  declare(indexes: CollectionShape['indexes']): Promise<void> {
    return this.#indexes.declare(indexes);
  }

  /** Nothing: others share the collection. The store ends it, see `end`. */
  readonly close = (): void => undefined;

  /** Ends what the collection does by itself. Resolves when that is done. */
  end(): Promise<void> {
    return this.#indexes.close();
  }
}
