import type { Batch } from './batch.ts';
import { BSON } from './bson.ts';
import type { Bookmark, Identity } from './bookmark.ts';
import type { ChangedKeys, ChangeFeed, FeedPlace, FeedSize } from './change-feed.ts';
import { LoopTurns } from './loop-turns.ts';
import { SharedLookUp } from './shared-look-up.ts';
import type { Plan, Size } from './store.ts';

/**
 * The changes of a collection for many readers. Readers that have read up to the same place share the look-up of the
 * same keys. They come there together: one that waits for changes reads on only when the others have had theirs.
 *
 * A row may be read only after the change that its reader knows of. A look-up of the same place was begun by a reader
 * that knew the same changes, so it may be joined at any time. The same keys alone say nothing: their rows may have
 * changed again in between.
 */
export class SharedFeed implements Pick<ChangeFeed, 'read'> {
  readonly #feed: ChangeFeed;
  readonly #lookUps = new Map<string, SharedLookUp>();
  readonly #turns = new LoopTurns();
  /** Readers that wait for changes, or for their turn to take them. */
  #waiting = 0;

  constructor(feed: ChangeFeed) {
    this.#feed = feed;
  }

  /** See ChangeFeed. */
  async read(
    place: FeedPlace,
    size: FeedSize,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<ChangedKeys> {
    if (size.waitMs <= 0) return this.#feed.read(place, size, identity, signal);
    this.#waiting++;
    try {
      await this.#turns.round();
      const changed = await this.#feed.read(place, size, identity, signal);
      if (this.#waiting > 1 && changed.keys.length > 0) await this.#turns.next();
      signal.throwIfAborted();
      return changed;
    } finally {
      this.#waiting--;
    }
  }

  /** See ChangeFeed. `place`: the one behind these keys, up to which the reader has read the changes. */
  async *rows(
    keys: readonly Bookmark[],
    plan: Plan,
    place: FeedPlace,
    size: Size,
    signal: AbortSignal,
  ): AsyncGenerator<Batch, void, undefined> {
    signal.throwIfAborted();
    const name = nameOf(keys, plan, place);
    const lookUp = this.#joinable(name) ?? this.#begin(name, (own) => this.#feed.rows(keys, plan, size, own));
    const reader = lookUp.join();
    try {
      for (;;) {
        const batch = await lookUp.next(reader, signal);
        if (!batch) return;
        if (lookUp.isShared || this.#waiting > 0) await this.#turns.next(); // others may still join meanwhile
        if (signal.aborted) batch.release();
        signal.throwIfAborted();
        yield batch;
      }
    } finally {
      await lookUp.leave(reader);
      if (this.#lookUps.get(name) === lookUp && !lookUp.isJoinable) this.#lookUps.delete(name);
    }
  }

  #joinable(name: string): SharedLookUp | undefined {
    const lookUp = this.#lookUps.get(name);
    return lookUp?.isJoinable === true ? lookUp : undefined;
  }

  #begin(name: string, rows: ConstructorParameters<typeof SharedLookUp>[0]): SharedLookUp {
    const lookUp = new SharedLookUp(rows);
    this.#lookUps.set(name, lookUp);
    return lookUp;
  }
}

/** A text that is the same for look-ups of the same keys by the same plan at the same place. */
function nameOf(keys: readonly Bookmark[], plan: Plan, { token, seen }: FeedPlace): string {
  const { equals = [], identity = '', since = '' } = plan;
  const head = [textOf(token), seen ?? '', since, identity, textOf(BSON.serialize({ equals }))];
  return [JSON.stringify(head.map(String)), ...keys.map(textOf)].join('');
}

/** Bytes as a text, for maps. Equal values of different types have different texts. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}
