import { noSuchPlace } from '../../../base/errors.ts';
import { KEY_INDEX } from '../../indexes.ts';
import type { Layout } from '../collection/create-collection.ts';
import { CODES, serverCodeOf } from '../errors.ts';
import { faultOf } from '../faults.ts';
import { hintOf, type Range } from '../plan.ts';
import type { Condition } from './predicates.ts';
import type { FindWay, Reply, When } from '../lane/lane.ts';
import type { Layouts } from '../collection/layouts.ts';
import { isAhead } from '../snapshot.ts';

/** Sends the finds of one collection. */
export class Finder {
  readonly #way: FindWay;
  readonly #layouts: Layouts;

  constructor(way: FindWay, layouts: Layouts) {
    this.#way = way;
    this.#layouts = layouts;
  }

  /** At most `limit` rows of a range after its first `skip`; fewer where a reply has 16 MB. `path`: only that. */
  range(
    asked: Range,
    limit: number,
    layout: Layout,
    signal: AbortSignal,
    skip = 0,
    path?: string,
  ): Promise<Reply> {
    const { index, sort, min, max, filter, isForward = !Object.values(sort).includes(-1) } = asked;
    const find = {
      find: this.#layouts.collection,
      limit,
      // As many as the limit, so that mongod closes the cursor with this reply. Without batchSize, a reply has 101 rows.
      // With singleBatch, a reply cut at 16 MB looks like the end.
      batchSize: limit,
      ...(index && { hint: hintOf(index) }),
      // In ascending order the index gives that order. A sort would then only let the server sort by itself once the
      // index is multikey. A mongos needs the sort to merge the rows of its shards.
      ...((layout.sharded || !isForward) && { sort }),
      ...(min && { min }),
      ...(max && { max }),
      ...(filter && { filter }),
      ...(path !== undefined && { projection: { [path]: 1 } }),
      ...(skip > 0 && { skip }),
    };
    return this.#send(find, layout, signal, asked);
  }

  /** The rows of these ids that meet all conditions. */
  readonly byIds: ByIds = (ids, conditions, layout, signal, when) => {
    if (layout.clustered) return this.#byEachId(ids, conditions, layout, signal, when);
    const filter = { $and: [{ _id: { $in: ids } }, ...conditions] };
    return this.range({ ...when, index: KEY_INDEX, sort: {}, filter }, ids.length, layout, signal);
  };

  /**
   * The rows of ids in a clustered collection, where MongoDB 6.0 answers `$in` on the key by reading every row. Equality it
   * answers by one row, so each id has a pipeline of its own. (Single finds take four times as long.)
   */
  readonly #byEachId: ByIds = async (ids, conditions, layout, signal, when) => {
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
      const filter = { _id: { $eq: first } };
      (await this.range({ ...when, sort: {}, filter }, 1, layout, signal)).slot.release();
    } catch (error) {
      reply.slot.release();
      throw error;
    }
    return reply;
  };

  /** Every command names the identity of its collection: that of the plan, else the one found at layouts. */
  async #send(command: Record<string, unknown>, layout: Layout, signal: AbortSignal, asked: When) {
    const { at, since, identity = layout.identity } = asked;
    const layouts = this.#layouts;
    let reply: Reply;
    try {
      reply = await this.#way.find(command, signal, { at, since, identity });
    } catch (error) {
      const isTooEarly = since !== undefined && serverCodeOf(error) === CODES.invalidOptions;
      if (isTooEarly && (await isAhead(layouts.connection, since, signal))) throw noSuchPlace(error);
      throw faultOf(error, layouts, asked);
    }
    if (layouts.isProved) return reply;
    try {
      await layouts.layout(signal); // the server that answered may have taken the place of a lost one
      return reply;
    } catch (error) {
      reply.slot.release();
      throw error;
    }
  }
}

type ByIds = (
  ids: readonly unknown[],
  conditions: readonly Condition[],
  layout: Layout,
  signal: AbortSignal,
  when: When,
) => Promise<Reply>;
