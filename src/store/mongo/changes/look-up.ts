import type { Batch } from '../../batch.ts';
import type { Bookmark, Identity } from '../../bookmark.ts';
import type { ChangeFeed } from '../../change-feed.ts';
import { AppError, storeUnfit } from '../../../base/errors.ts';
import type { Slots } from '../../turns/slots.ts';
import type { Equality, Plan, Size } from '../../store.ts';
import { BatchBuilder } from '../read/batch-builder.ts';
import type { Layout } from '../collection/create-collection.ts';
import type { Finder } from '../read/find.ts';
import type { Layouts } from '../collection/layouts.ts';
import { commandKey } from '../read/bookmark-in-command.ts';
import { whenOf } from '../plan.ts';
import { conditionOf, withoutArrays, type Condition } from '../read/predicates.ts';
import type { Reply } from '../lane/lane.ts';
import { endOf, feedFault } from './feed-faults.ts';

/** The most keys in a command, and the most bytes of them. */
const MOST_KEYS = 1_000;
const MOST_KEYS_CLUSTERED = 100;
const MOST_KEY_BYTES = 1024 * 1024;
/** A reply may be this many times larger than the wanted batch. */
const MOST_TIMES = 4;

/** Looks up the rows of keys: see ChangeFeed. */
export class LookUps {
  readonly #layouts: Layouts;
  readonly #finder: Finder;
  readonly #slots: Slots;
  /** Recent average size of a row, in bytes, so that a find asks for about as much as a batch may hold. */
  #rowBytes = 1_024;

  constructor(layouts: Layouts, finder: Finder, slots: Slots) {
    this.#layouts = layouts;
    this.#finder = finder;
    this.#slots = slots;
  }

  readonly lookUp: ChangeFeed['lookUp'] = async (keys, plan, size, signal) => {
    signal.throwIfAborted();
    try {
      const layout = await this.#layouts.layout(signal);
      const { reply, taken } = await this.#find(keys, plan, size, layout, signal);
      return { taken, batch: this.#batchOf(reply, plan, plan.identity ?? layout.identity) };
    } catch (error) {
      signal.throwIfAborted();
      throw endOf(await this.#layouts.orReplaced(feedFault(error), plan.identity, signal));
    }
  };

  /**
   * The rows of the first keys, all of them: a reply that was cut would make its other rows look removed. It is asked
   * for again with fewer keys, and so is one that is far larger than was expected.
   */
  async #find(
    keys: readonly Bookmark[],
    plan: Plan,
    size: Size,
    layout: Layout,
    signal: AbortSignal,
  ): Promise<{ readonly reply: Reply; readonly taken: number }> {
    const conditions = [...(plan.equals?.flatMap(conditionsAt) ?? []), ...amongConditions(plan)];
    const most = layout.clustered ? MOST_KEYS_CLUSTERED : MOST_KEYS;
    const fitting = () => this.#fitting(keys, most, size);
    for (let taken = fitting(); ; taken = Math.min(taken >> 1, fitting())) {
      const ids = keys.slice(0, taken).map(idOf);
      const reply = await this.#finder.byIds(ids, conditions, layout, signal, whenOf(plan));
      if (!reply.cut && (taken === 1 || reply.length <= MOST_TIMES * size.bytes)) return { reply, taken };
      reply.slot.release();
      if (taken === 1) throw new TypeError('a reply with one row was cut');
      this.#rowBytes = Math.max(this.#rowBytes, reply.length / taken);
    }
  }

  /** How many of the first keys to look up at once. */
  #fitting(keys: readonly Bookmark[], mostKeys: number, { rows, bytes }: Size): number {
    const most = Math.max(1, Math.min(rows, mostKeys, Math.floor(bytes / this.#rowBytes), keys.length));
    let size = 0;
    for (let n = 0; n < most; n++) {
      size += keys[n]?.length ?? 0;
      if (size > MOST_KEY_BYTES) return Math.max(1, n);
    }
    return most;
  }

  #batchOf(reply: Reply, plan: Plan, identity: Identity | undefined): Batch | null {
    const builder = new BatchBuilder(plan, { rows: Infinity, bytes: Infinity });
    builder.take(reply);
    if (builder.rows === 0) return null;
    this.#rowBytes += (builder.bytes / builder.rows - this.#rowBytes) / 4;
    return builder.toBatch(this.#slots, false, identity);
  }
}

/** The id of a key as a command carries it. A key that no command can carry is a fault of the collection. */
function idOf(key: Bookmark): unknown {
  try {
    return commandKey(key)._id;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw storeUnfit('A row that changed has an _id that no MongoDB command can carry exactly.', error);
  }
}

function conditionsAt({ path, value }: Equality): readonly Condition[] {
  return withoutArrays(path, conditionOf(value));
}

/** That a row has one of several values. */
function amongConditions({ among }: Plan): readonly Condition[] {
  if (!among) return [];
  const { path, values } = among;
  return [{ $or: values.map((value) => ({ $and: conditionsAt({ path, value }) })) }];
}
