import { collectionReplaced } from '../../errors.ts';
import type { Identity } from '../bookmark.ts';
import { addIndexes, fillByInserts } from '../fill-by-inserts.ts';
import type { Slots } from '../slots.ts';
import type { Declaration, OwnedCollection, Plan } from '../store.ts';
import { replaceByEmpty } from './clear.ts';
import type { MongoConnection } from './connection.ts';
import { countRows } from './count.ts';
import type { Layout, LayoutOptions } from './create-collection.ts';
import { faultOf, inPresentCollection } from './faults.ts';
import { mongoFeed, type FeedParts } from './feed/feed.ts';
import { lookUpIn } from './feed/look-up.ts';
import { addRows, countToReplace, replaceRows, type Filled } from './fill.ts';
import { finderOf } from './find.ts';
import { isSingle } from './index-ranges.ts';
import { insertRows } from './insert.ts';
import { Layouts, type LookTiming } from './layouts.ts';
import { addIndex } from './make-indexes.ts';
import { nextValueIn } from './next-value.ts';
import type { IndexedPlan } from './plan.ts';
import { deleteRaw } from './raw-write.ts';
import { readsOf } from './read.ts';
import type { FindWay } from './lane/lane.ts';
import { presentTime } from './snapshot.ts';
import { splitRows } from './split.ts';

/** Where the rows of a collection are, and how they are read. */
export interface Ground {
  readonly connection: MongoConnection;
  readonly way: FindWay;
  readonly slots: Slots;
  readonly timing: LookTiming | undefined;
}

export interface OpenCollection<Rows = OwnedCollection> {
  readonly rows: Rows;
  readonly layouts: Layouts;
}

/** Opens a collection. Nothing is asked of the server before its first use. `streams`: those of its changes, if it has any. */
export function openCollection(
  { connection, way, slots, timing }: Ground,
  options: LayoutOptions,
  declaration: Pick<Declaration, 'indexes' | 'refusalOf'>,
  streams?: Pick<FeedParts, 'stream' | 'streamWith'>,
): OpenCollection {
  const { collection } = options;
  const layouts = new Layouts(connection, options, timing);
  const finder = finderOf(way, layouts);
  const reads = readsOf({ layouts, finder, slots });
  const lookUp = lookUpIn({ layouts, finder, slots });
  /** The collection that the first rows were written into. An import does not continue in another collection. */
  let writtenTo: Identity | undefined;

  const inLayout = async <T>(
    plan: Plan,
    signal: AbortSignal,
    work: (layout: Layout, plan: IndexedPlan) => Promise<T>,
  ): Promise<T> => {
    signal.throwIfAborted();
    return inPresentCollection(plan.identity, signal, async () =>
      work(...(await layouts.layoutFor(plan, signal))),
    );
  };

  /** A write cannot name the identity of its collection, and creates a missing one: it is checked before and after. */
  const written = async <T>(write: (identity: Identity | undefined) => Promise<T>): Promise<T> => {
    const identity = await layouts.present();
    const result = await write(identity);
    if ((await layouts.present()) !== identity) throw collectionReplaced();
    return result;
  };

  const rows: OwnedCollection = {
    ...(streams && { changes: mongoFeed({ connection, layouts, lookUp, slots, ...streams }) }),
    close: () => layouts.close(),
    read: reads.read,

    async describe(signal, { now } = { now: false }) {
      if (!now) return layouts.layout(signal);
      signal.throwIfAborted();
      return inPresentCollection(undefined, signal, async () => {
        const layout = await layouts.layout(signal); // a collection that does not exist yet has no time
        try {
          return { ...layout, now: await presentTime(connection, collection, layout.identity, signal) };
        } catch (error) {
          throw faultOf(error, layouts, {});
        }
      });
    },

    async count(plan, mode, signal) {
      if (plan.ids)
        throw new TypeError('no query says a range of ids of several types: it is read, not counted');
      return inLayout(plan, signal, async (layout, indexed) => {
        if (!isSingle(indexed)) return countRows(layouts, indexed, mode, layout, signal);
        const batch = await reads.read(plan, {}, { rows: 1, bytes: 1 }, signal);
        batch.release();
        return { rows: batch.rows, is: 'exact' };
      });
    },

    split: (plan, parts, signal) =>
      inLayout(plan, signal, async (layout, indexed) =>
        isSingle(indexed) ? [] : splitRows({ layouts, finder }, indexed, parts, layout, signal),
      ),

    nextValue: nextValueIn(layouts, reads),

    insert: (rows, onConflict) =>
      written((identity) => {
        writtenTo ??= identity;
        if (writtenTo !== identity) throw collectionReplaced();
        return insertRows(connection, collection, rows, onConflict, declaration.refusalOf);
      }),

    remove: (keys) => written(() => deleteRaw(connection, collection, keys)),

    fill: async (batches, how) => {
      const { isEndless, onRemoved } = how;
      if (isEndless) await fillByInserts(rows, batches, how);
      else if (onRemoved) await replaceRows(filled, batches, how, onRemoved);
      else await addRows(filled, batches, how);
      await addIndexes(rows, how);
    },

    async addIndex(paths, _, signal) {
      const added = await addIndex(connection, collection, paths, signal);
      layouts.forget();
      return added;
    },

    async clear(signal) {
      const count = await countToReplace(filled, signal);
      await replacing(() => replaceByEmpty(connection, collection));
      return count;
    },
  };

  const replacing: Filled['replacing'] = async (work) => {
    const layout = await layouts.layout();
    try {
      await work();
    } finally {
      layouts.forget(layout);
      writtenTo = undefined; // the next rows go into the new collection
    }
  };
  const filled: Filled = {
    connection,
    layouts,
    rows,
    options,
    refusalOf: declaration.refusalOf,
    wanted: declaration.indexes,
    replacing,
  };
  return { rows, layouts };
}
