import { storeUnavailable } from '../../errors.ts';
import { Long } from '../bson.ts';
import type { Layout } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { isOtherCollection } from './errors.ts';
import type { Range } from './plan.ts';
import { readReply } from './reply.ts';
import type { Reply } from './reply.ts';
import type { Setup } from './setup.ts';

/** Asks the collection for rows; leaves no cursor open in the server. */
export class Finder {
  readonly #connection: MongoConnection;
  readonly #setup: Setup;
  /** Cursors being killed: owned here, so that close() waits for them and nobody else has to. */
  readonly #killing = new Set<Promise<void>>();

  constructor(connection: MongoConnection, setup: Setup) {
    this.#connection = connection;
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
    const { index, sort, min, max, filter } = range;
    return this.#ask(
      {
        hint: layout.indexes[index],
        sort,
        ...(min && { min }),
        ...(max && { max }),
        ...(filter && { filter }),
        ...(skip > 0 && { skip }),
        limit,
        // Without it a reply has 101 rows; with singleBatch one that stopped at 16 MB looks like the end.
        batchSize: limit,
      },
      signal,
    );
  }

  /** The row of an id, or none. */
  async one(id: unknown, signal: AbortSignal): Promise<Reply> {
    return this.#ask({ filter: { _id: { $eq: id } }, limit: 1, batchSize: 1 }, signal);
  }

  /** Whether a row stands below an id, in full BSON order. */
  async isAnyBelow(id: unknown, layout: Layout, signal: AbortSignal): Promise<boolean> {
    const bounds = { hint: layout.indexes.id, sort: { _id: 1 }, max: { _id: id } };
    const reply = await this.#ask({ ...bounds, projection: { _id: 1 }, limit: 1, batchSize: 1 }, signal);
    return reply.rows.length > 0;
  }

  /** Resolves when nothing is under way that was started here and nobody waits for. */
  async settle(): Promise<void> {
    await Promise.all(this.#killing);
  }

  async #ask(find: Record<string, unknown>, signal: AbortSignal): Promise<Reply> {
    const reply = readReply(await this.#run({ find: this.#setup.collection, ...find }, signal));
    if (reply.cursor !== 0n) this.#kill(reply.cursor);
    return reply;
  }

  async #run(command: Record<string, unknown>, signal: AbortSignal): Promise<Uint8Array> {
    try {
      const { cursor } = await this.#connection.run(command, { signal, raw: true });
      return cursor as Uint8Array;
    } catch (error) {
      if (!isOtherCollection(error)) throw error;
      this.#setup.forget();
      throw storeUnavailable(error);
    }
  }

  /** Gives back a cursor that nobody will ask again; the server would keep it for 10 minutes. */
  #kill(cursor: bigint): void {
    const command = { killCursors: this.#setup.collection, cursors: [Long.fromBigInt(cursor)] };
    const killing = this.#connection.run(command).then(
      () => undefined,
      (error: unknown) =>
        this.#setup.warn(`A cursor could not be closed and will time out: ${String(error)}`),
    );
    this.#killing.add(killing);
    void killing.finally(() => this.#killing.delete(killing));
  }
}
