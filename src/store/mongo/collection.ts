import { changesUnsupported, collectionReplaced } from '../../base/errors.ts';
import type { Identity } from '../bookmark.ts';
import { addIndexes, fillByInserts } from '../writes/fill-by-inserts.ts';
import type { Slots } from '../turns/slots.ts';
import type { Count, Declaration, OwnedCollection, Plan } from '../store.ts';
import { replaceByEmpty } from './write/clear.ts';
import type { MongoConnection } from './connection.ts';
import { countRows } from './read/count.ts';
import type { Layout, LayoutOptions } from './collection/create-collection.ts';
import { dropCollection, removeIndex, renameCollection } from './write/drop.ts';
import { faultOf, inPresentCollection } from './faults.ts';
import { STANDALONE } from './changes/feed-faults.ts';
import { MongoFeed, type FeedParts } from './changes/feed.ts';
import { LookUps } from './changes/look-up.ts';
import { addRows, countToReplace, replaceRows, type FillTarget } from './write/fill.ts';
import { Finder } from './read/find.ts';
import { isSingle } from './read/index-ranges.ts';
import { insertRows } from './write/insert.ts';
import { Layouts } from './collection/layouts.ts';
import type { LookTiming } from './collection/look-timing.ts';
import { addIndex } from './collection/make-indexes.ts';
import { nextValueIn } from './read/next-value.ts';
import type { IndexedPlan } from './plan.ts';
import { deleteRaw } from './write/raw-write.ts';
import { Reads } from './read/read.ts';
import type { FindWay } from './lane/lane.ts';
import { presentTime } from './snapshot.ts';
import { splitRows } from './read/split.ts';

/** Where the rows of a collection are, and how they are read. */
export interface CollectionParts {
  readonly connection: MongoConnection;
  readonly way: FindWay;
  readonly slots: Slots;
  readonly timing: LookTiming | undefined;
}

export interface OpenCollection<Rows = OwnedCollection> {
  readonly rows: Rows;
  readonly layouts: Layouts;
}

type Streams = Pick<FeedParts, 'stream' | 'streamWith'>;

/** Opens a collection. Nothing is asked of the server before its first use. `streams`: those of its changes, if it has any. */
export function openCollection(
  ground: CollectionParts,
  options: LayoutOptions,
  declaration: Pick<Declaration, 'indexes' | 'check'>,
  streams?: Streams,
): OpenCollection {
  const rows = new MongoCollection(ground, options, declaration, streams);
  return { rows, layouts: rows.layouts };
}

/** A collection of MongoDB. Its methods are properties, because other collections are made of it and of methods of their own. */
class MongoCollection implements OwnedCollection {
  readonly layouts: Layouts;
  readonly changes: OwnedCollection['changes'];
  readonly read: OwnedCollection['read'];
  readonly nextValue: OwnedCollection['nextValue'];
  readonly #connection: MongoConnection;
  readonly #finder: Finder;
  readonly #filled: FillTarget;
  /** The collection that the first rows were written into. An import does not continue in another collection. */
  #writtenTo: Identity | undefined;

  constructor(
    { connection, way, slots, timing }: CollectionParts,
    options: LayoutOptions,
    { indexes, check }: Pick<Declaration, 'indexes' | 'check'>,
    streams?: Streams,
  ) {
    const layouts = new Layouts(connection, options, timing);
    const finder = new Finder(way, layouts);
    const reads = new Reads(layouts, finder, slots);
    const { lookUp } = new LookUps(layouts, finder, slots);
    this.layouts = layouts;
    this.changes = streams && new MongoFeed({ connection, layouts, lookUp, slots, ...streams });
    this.read = reads.read;
    this.nextValue = nextValueIn(layouts, reads);
    this.#connection = connection;
    this.#finder = finder;
    const replacing: FillTarget['replacing'] = (work) => this.#replacing(work);
    this.#filled = { connection, layouts, rows: this, options, check, wanted: indexes, replacing };
  }

  readonly close = (): void => this.layouts.close();

  readonly describe: OwnedCollection['describe'] = async (signal, { now } = { now: false }) => {
    const { layouts } = this;
    if (!now) return layouts.layout(signal);
    signal.throwIfAborted();
    return inPresentCollection(undefined, signal, async () => {
      const layout = await layouts.layout(signal); // a collection that does not exist yet has no time
      try {
        const time = presentTime(this.#connection, layouts.collection, layout.identity, signal);
        return { ...layout, now: await time };
      } catch (error) {
        throw faultOf(error, layouts, {});
      }
    });
  };

  /** The server keeps past states by itself, so there is nothing to release. */
  readonly snapshot: NonNullable<OwnedCollection['snapshot']> = async (signal) => {
    const { now: at = null, identity } = await this.describe(signal, { now: true });
    if (at === null || !this.changes) throw changesUnsupported(STANDALONE);
    const state = identity === undefined ? { at } : { at, identity };
    const read: OwnedCollection['read'] = (plan, ...rest) => this.read({ ...state, ...plan, at }, ...rest);
    return { rows: { read }, place: this.changes.at(at), identity, release: () => undefined };
  };

  readonly count: OwnedCollection['count'] = async (plan, mode, signal) => {
    if (plan.ids)
      throw new TypeError('no query says a range of ids of several types: it is read, not counted');
    return this.#inLayout(plan, signal, async (layout, indexed): Promise<Count> => {
      if (!isSingle(indexed)) return countRows(this.layouts, indexed, mode, layout, signal);
      const batch = await this.read(plan, {}, { rows: 1, bytes: 1 }, signal);
      batch.release();
      return { rows: batch.rows, is: 'exact' };
    });
  };

  readonly split: OwnedCollection['split'] = (plan, parts, signal) =>
    this.#inLayout(plan, signal, async (layout, indexed) => {
      const all = { layouts: this.layouts, finder: this.#finder };
      return isSingle(indexed) ? [] : splitRows(all, indexed, parts, layout, signal);
    });

  readonly insert: OwnedCollection['insert'] = (rows, onConflict) =>
    this.#written((identity) => {
      this.#writtenTo ??= identity;
      if (this.#writtenTo !== identity) throw collectionReplaced();
      const { options, check } = this.#filled;
      return insertRows(this.#connection, options.collection, rows, onConflict, check);
    });

  readonly remove: OwnedCollection['remove'] = (keys) =>
    this.#written(() => deleteRaw(this.#connection, this.layouts.collection, keys));

  readonly fill: OwnedCollection['fill'] = async (batches, how) => {
    const { isEndless, onRemoved } = how;
    if (isEndless) await fillByInserts(this, batches, how);
    else if (onRemoved) await replaceRows(this.#filled, batches, how, onRemoved);
    else await addRows(this.#filled, batches, how);
    await addIndexes(this, how);
  };

  readonly addIndex: OwnedCollection['addIndex'] = async (paths, _, signal) => {
    const added = await addIndex(this.#connection, this.layouts.collection, paths, signal);
    this.layouts.forget();
    return added;
  };

  readonly removeIndex: OwnedCollection['removeIndex'] = async (paths) => {
    await removeIndex(this.#connection, this.layouts.collection, paths);
    this.layouts.forget();
  };

  readonly drop = (): Promise<void> => dropCollection(this.#connection, this.layouts.collection);
  readonly rename = (to: string): Promise<void> =>
    renameCollection(this.#connection, this.layouts.collection, to);

  readonly clear: OwnedCollection['clear'] = async (signal) => {
    const count = await countToReplace(this.#filled, signal);
    await this.#replacing(() => replaceByEmpty(this.#connection, this.layouts.collection));
    return count;
  };

  async #inLayout<T>(
    plan: Plan,
    signal: AbortSignal,
    work: (layout: Layout, plan: IndexedPlan) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    return inPresentCollection(plan.identity, signal, async () =>
      work(...(await this.layouts.layoutFor(plan, signal))),
    );
  }

  /** A write cannot name the identity of its collection, and creates a missing one: it is checked before and after. */
  async #written<T>(write: (identity: Identity | undefined) => Promise<T>): Promise<T> {
    const identity = await this.layouts.present();
    const result = await write(identity);
    if ((await this.layouts.present()) !== identity) throw collectionReplaced();
    return result;
  }

  async #replacing(work: () => Promise<void>): Promise<void> {
    const layout = await this.layouts.layout();
    try {
      await work();
    } finally {
      this.layouts.forget(layout);
      this.#writtenTo = undefined; // the next rows go into the new collection
    }
  }
}
