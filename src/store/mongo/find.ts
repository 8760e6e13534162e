import type { Bookmark } from '../bookmark.ts';
import type { Layout } from './collection.ts';
import { faultOf } from './faults.ts';
import { Gathering } from './batch-builder.ts';
import type { Range } from './plan.ts';
import type { FindWay, Reply, When } from './reply.ts';
import type { Setup } from './setup.ts';

/** Asks the collection for rows. */
export class Finder {
  readonly #way: FindWay;
  readonly #setup: Setup;

  constructor(way: FindWay, setup: Setup) {
    this.#way = way;
    this.#setup = setup;
  }

  /** The first `limit` rows of a range behind the first `skip`: fewer when it ends, or when the reply is at its 16 MB. */
  async range(
    range: Range,
    limit: number,
    skip: number,
    layout: Layout,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { filter } = range;
    return this.#ask(
      {
        ...stretchOf(range, layout),
        ...(filter && { filter }),
        ...(skip > 0 && { skip }),
        limit,
        // Without it a reply has 101 rows; with singleBatch one that stopped at 16 MB looks like the end.
        batchSize: limit,
      },
      layout,
      signal,
      range,
    );
  }

  /** The id `skip` entries behind a range's first one, taken from the index; null when the range ends before. */
  async idBehind(range: Range, skip: number, layout: Layout, signal: AbortSignal): Promise<Bookmark | null> {
    const one = { projection: { _id: 1 }, skip, limit: 1, batchSize: 1 };
    const reply = await this.#ask({ ...stretchOf(range, layout), ...one }, layout, signal, range);
    const gathering = new Gathering({ order: 'id' }, { rows: 1, bytes: Infinity });
    gathering.take(reply);
    gathering.release();
    return gathering.last;
  }

  /** The row of an id, or none. */
  async one(id: unknown, layout: Layout, signal: AbortSignal): Promise<Reply> {
    return this.#ask({ filter: { _id: { $eq: id } }, limit: 1, batchSize: 1 }, layout, signal);
  }

  /** Whether a row stands below the ids of a range that has a floor, in full BSON order. */
  async isAnyBelow(range: Range, layout: Layout, signal: AbortSignal): Promise<boolean> {
    const bounds = { hint: layout.indexes.id, sort: { _id: 1 }, max: { _id: range.floor?.value } };
    const reply = await this.#ask(
      { ...bounds, projection: { _id: 1 }, limit: 1, batchSize: 1 },
      layout,
      signal,
      range,
    );
    reply.slot.release();
    return reply.length > 0;
  }

  /** Every find names its collection: that of the plan, else the one that was found. */
  async #ask(
    find: Record<string, unknown>,
    layout: Layout,
    signal: AbortSignal,
    asked: When = {},
  ): Promise<Reply> {
    const { at, since, identity } = asked;
    const named = identity ?? layout.identity;
    const when = {
      ...(at !== undefined && { at }),
      ...(since !== undefined && { since }),
      ...(named !== undefined && { identity: named }),
    };
    try {
      return await this.#way.find({ find: this.#setup.collection, ...find }, signal, when);
    } catch (error) {
      throw faultOf(error, this.#setup, asked);
    }
  }
}

/**
 * What says which entries of which index a find goes over, and in which order. Forward the order is the index's own, and to
 * say it would only let the server sort by itself, once the index is multikey. A mongos needs it, to merge what shards give.
 */
function stretchOf({ index, sort, min, max }: Range, layout: Layout): Readonly<Record<string, unknown>> {
  const isSorted = layout.sharded || Object.values(sort).includes(-1);
  return { hint: layout.indexes[index], ...(isSorted && { sort }), ...(min && { min }), ...(max && { max }) };
}
