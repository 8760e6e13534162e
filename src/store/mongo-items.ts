import { storeUnavailable } from '../errors.ts';
import type { Batch } from './batch.ts';
import { keyOf } from './bookmark.ts';
import type { Bookmark } from './bookmark.ts';
import { Long } from './bson.ts';
import type { Layout } from './mongo-collection.ts';
import type { MongoConnection } from './mongo-connection.ts';
import { isOtherCollection } from './mongo-errors.ts';
import { Gathering } from './mongo-gather.ts';
import { insertRows } from './mongo-insert.ts';
import { commandKey } from './mongo-key.ts';
import { INDEX_KEYS, rangesOf } from './mongo-plan.ts';
import type { Range } from './mongo-plan.ts';
import { readReply } from './mongo-reply.ts';
import type { Reply } from './mongo-reply.ts';
import type { Setup } from './mongo-setup.ts';
import type { Slots } from './slots.ts';
import type { From, InsertResult, ItemStore, OnConflict, Plan, Size } from './store.ts';

/** How much more is asked for than the average row says is needed, so that one find is enough nearly always. */
const MARGIN = 1.1;

/** The items of a MongoDB collection, read by finds on index bounds whose replies nobody parses. */
export class MongoItems implements ItemStore {
  readonly #connection: MongoConnection;
  readonly #setup: Setup;
  readonly #slots: Slots;
  /** Cursors being killed: owned here, so that close() waits for them and nobody else has to. */
  readonly #killing = new Set<Promise<void>>();
  /** Bytes a row had on average lately: keeps a read of large rows from asking for 16 MB to use one of them. */
  #rowBytes = 256;

  constructor(connection: MongoConnection, setup: Setup, slots: Slots) {
    this.#connection = connection;
    this.#setup = setup;
    this.#slots = slots;
  }

  async read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    if (from.after && from.skip)
      throw new TypeError('a read begins after a row or after so many rows, not both');
    signal.throwIfAborted();
    const layout = await this.#setup.layout(signal);
    const gathering = new Gathering(plan, size);
    let ranges = rangesOf(plan, from.after ?? null, layout.clustered);
    let skip = from.skip ?? 0;
    let more = false;
    for (let range = ranges[0]; range; range = ranges[0]) {
      const limit = this.#limit(gathering.missing, range);
      const reply = await this.#find(range, limit, skip, layout, signal);
      skip = 0;
      const before = gathering.rows;
      const { rows, left } = gathering.take(reply.rows, range.bookmarkId);
      const goesOn = left || reply.cursor !== 0n || rows === limit;
      if (goesOn) {
        if ((more = gathering.isFull)) break;
        const stuck = gathering.rows === before;
        ranges = rangesOf(plan, gathering.last ?? from.after ?? null, layout.clustered).map((next) =>
          stuck ? withoutBookmark(next) : next,
        );
        continue;
      }
      const [, ...rest] = ranges;
      if (rest.length > 0 && range.floor && !(await this.#anyBelow(range.floor.value, layout, signal))) break;
      if ((more = rest.length > 0 && gathering.isFull)) break;
      ranges = rest;
    }
    if (gathering.rows > 0) this.#rowBytes += (gathering.bytes / gathering.rows - this.#rowBytes) / 4;
    return gathering.toBatch(this.#slots, more);
  }

  async get(id: Bookmark, signal: AbortSignal): Promise<Batch | null> {
    await this.#setup.layout(signal);
    const filter = { _id: { $eq: commandKey(id)._id } };
    const reply = await this.#ask({ filter, limit: 1, batchSize: 1, singleBatch: true }, signal);
    if (reply.rows.length === 0) return null;
    const gathering = new Gathering({ order: 'id', direction: 1 }, { rows: 1, bytes: Infinity });
    gathering.take(reply.rows, undefined);
    return gathering.toBatch(this.#slots, false);
  }

  async insert(rows: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    await this.#setup.layout();
    return insertRows(this.#connection, this.#setup.collection, rows, onConflict);
  }

  /** Resolves when nothing is under way that this object started by itself. */
  async settle(): Promise<void> {
    await Promise.all(this.#killing);
  }

  /** One row more than wanted, which tells whether there are more; and one for the bookmark's, which comes first. */
  #limit({ rows, bytes }: Size, range: Range): number {
    const enough = Math.ceil((bytes / this.#rowBytes) * MARGIN);
    return Math.min(rows, enough) + 1 + (range.bookmarkId ? 1 : 0);
  }

  async #find(
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

  /** Whether a row stands below an id, in full BSON order. */
  async #anyBelow(id: unknown, layout: Layout, signal: AbortSignal): Promise<boolean> {
    const [field] = INDEX_KEYS.id;
    const bounds = { hint: layout.indexes.id, sort: { [field]: 1 }, max: { [field]: id } };
    const reply = await this.#ask({ ...bounds, projection: { [field]: 1 }, limit: 1, batchSize: 1 }, signal);
    return reply.rows.length > 0;
  }

  async #ask(find: Record<string, unknown>, signal: AbortSignal): Promise<Reply> {
    const command = { find: this.#setup.collection, ...find };
    const reply = readReply(await this.#run(command, signal));
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

/**
 * The range without its bookmark's row. When that row and the next one do not fit one reply of 16 MB, the reply is the
 * bookmark's row alone, again and again; so the server leaves it out. Not always done so: it makes a scan 5 to 20 % slower.
 */
function withoutBookmark({ bookmarkId, ...range }: Range): Range {
  return bookmarkId ? { ...range, filter: { _id: { $ne: keyOf(bookmarkId)._id } } } : range;
}
