import { KEY, type Bookmark } from '../bookmark.ts';
import { endOfRow } from '../bson-array.ts';
import { noSuchPlace } from '../../errors.ts';
import type { Layout } from './create-collection.ts';
import { CODES, serverCodeOf } from './errors.ts';
import { faultOf } from './faults.ts';
import { BatchBuilder } from './batch-builder.ts';
import { BY_KEY, type Range } from './plan.ts';
import type { Condition } from './predicates.ts';
import type { FindWay, Reply, When } from './reply.ts';
import type { Layouts } from './layouts.ts';

/** Sends finds for rows of the collection. */
export class Finder {
  readonly #way: FindWay;
  readonly #layouts: Layouts;

  constructor(way: FindWay, layouts: Layouts) {
    this.#way = way;
    this.#layouts = layouts;
  }

  /**
   * The rows of a range after its first `skip`, at most `limit`. Fewer when the range ends or the reply reaches its 16
   * MB.
   */
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
        limit,
        // As many as the limit, so that mongod closes the cursor with this reply. Without batchSize, a reply has 101 rows.
        // With singleBatch, a reply cut at 16 MB looks like the end.
        batchSize: limit,
        ...stretchOf(range, layout),
        ...(filter && { filter }),
        ...(skip > 0 && { skip }),
      },
      layout,
      signal,
      range,
    );
  }

  /** The id `skip` entries after the first one of a range, read from the index. Null when the range ends earlier. */
  async idBehind(range: Range, skip: number, layout: Layout, signal: AbortSignal): Promise<Bookmark | null> {
    const one = { projection: { _id: 1 }, skip, limit: 1, batchSize: 1 };
    const reply = await this.#ask({ ...stretchOf(range, layout), ...one }, layout, signal, range);
    const builder = new BatchBuilder({ sort: KEY }, { rows: 1, bytes: Infinity });
    builder.take(reply);
    builder.release();
    return builder.last;
  }

  /** The first `limit` rows of a range, reduced to a path. */
  async values(
    range: Range,
    path: string,
    limit: number,
    layout: Layout,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { filter } = range;
    const part = { ...(filter && { filter }), projection: { [path]: 1 }, limit, batchSize: limit };
    return this.#ask({ ...stretchOf(range, layout), ...part }, layout, signal, range);
  }

  /** The number of rows in a range, at most `most`. They come as keys, so a reply that is cut is followed by others. */
  async countUpTo(range: Range, most: number, layout: Layout, signal: AbortSignal): Promise<number> {
    let rows = 0;
    for (let isCut = true; isCut && rows < most;) {
      const part = { projection: { _id: 1 }, skip: rows, limit: most - rows, batchSize: most - rows };
      const filter = range.filter && { filter: range.filter };
      const reply = await this.#ask(
        { ...stretchOf(range, layout), ...filter, ...part },
        layout,
        signal,
        range,
      );
      const bytes = reply.slot.bytes(reply.start + reply.length);
      for (let at = reply.start; at < bytes.length; at = endOfRow(bytes, at)) rows++;
      reply.slot.release();
      isCut = reply.cut;
    }
    return rows;
  }

  /** A reply with the row of an id, or without rows. */
  async one(id: unknown, layout: Layout, signal: AbortSignal, when?: When): Promise<Reply> {
    return this.#ask({ filter: { _id: { $eq: id } }, limit: 1, batchSize: 1 }, layout, signal, when);
  }

  /** The rows of these ids that meet all conditions. */
  async byIds(
    ids: readonly unknown[],
    conditions: readonly Condition[],
    layout: Layout,
    signal: AbortSignal,
    when: When,
  ): Promise<Reply> {
    const filter = { $and: [{ _id: { $in: ids } }, ...conditions] };
    const all = { limit: ids.length, batchSize: ids.length };
    return this.#ask({ hint: layout.names.get(BY_KEY), filter, ...all }, layout, signal, when);
  }

  /**
   * The same in a clustered collection, where MongoDB 6.0 answers `$in` on the key by reading every row. Equality it
   * answers by one row, so each id has a pipeline of its own. (Single finds take four times as long.)
   */
  async byEachId(
    ids: readonly unknown[],
    conditions: readonly Condition[],
    layout: Layout,
    signal: AbortSignal,
    when: When,
  ): Promise<Reply> {
    const { collection: coll } = this.#layouts;
    const pipelineOf = (id: unknown) => [{ $match: { $and: [{ _id: { $eq: id } }, ...conditions] } }];
    const [first, ...others] = ids;
    const pipeline = [
      ...pipelineOf(first),
      ...others.map((id) => ({ $unionWith: { coll, pipeline: pipelineOf(id) } })),
    ];
    // One more than can come, so that the server finds the end and closes the cursor.
    const command = { aggregate: coll, pipeline, cursor: { batchSize: ids.length + 1 } };
    const reply = await this.#send(command, layout, signal, when);
    try {
      // The pipelines name their collection, and only the first one its identity. It still had it if it has it now.
      const still = await this.one(first, layout, signal, when);
      still.slot.release();
    } catch (error) {
      reply.slot.release();
      throw error;
    }
    return reply;
  }

  /** Whether any row lies below the floor of a range, in full BSON order. The range must have a floor. */
  async isAnyBelow(range: Range, layout: Layout, signal: AbortSignal): Promise<boolean> {
    const bounds = { hint: layout.names.get(BY_KEY), sort: { _id: 1 }, max: { _id: range.floor?.value } };
    const reply = await this.#ask(
      { ...bounds, projection: { _id: 1 }, limit: 1, batchSize: 1 },
      layout,
      signal,
      range,
    );
    reply.slot.release();
    return reply.length > 0;
  }

  #ask(find: Record<string, unknown>, layout: Layout, signal: AbortSignal, asked?: When): Promise<Reply> {
    return this.#send({ find: this.#layouts.collection, ...find }, layout, signal, asked);
  }

  /** Every command names the identity of its collection: that of the plan, else the one found at layouts. */
  async #send(
    command: Record<string, unknown>,
    layout: Layout,
    signal: AbortSignal,
    asked: When = {},
  ): Promise<Reply> {
    const { at, since, identity = layout.identity } = asked;
    let reply: Reply;
    try {
      reply = await this.#way.find(command, signal, { at, since, identity });
    } catch (error) {
      const isTooEarly = since !== undefined && serverCodeOf(error) === CODES.invalidOptions;
      if (isTooEarly && since > (await this.#layouts.presentTime())) throw noSuchPlace(error);
      throw faultOf(error, this.#layouts, asked);
    }
    if (this.#layouts.isProved) return reply;
    try {
      await this.#layouts.layout(signal); // the server that answered may have taken the place of a lost one
      return reply;
    } catch (error) {
      reply.slot.release();
      throw error;
    }
  }
}

/**
 * The part of a find that says which entries of which index it reads, and in which order. In ascending order the index
 * already gives that order. A sort would then only let the server sort by itself once the index is multikey. A mongos
 * needs the sort to merge the rows of its shards.
 */
function stretchOf(range: Range, layout: Layout): Readonly<Record<string, unknown>> {
  const { index, sort, min, max, isForward = !Object.values(sort).includes(-1) } = range;
  const isSorted = layout.sharded || !isForward;
  return {
    hint: layout.names.get(index),
    ...(isSorted && { sort }),
    ...(min && { min }),
    ...(max && { max }),
  };
}
