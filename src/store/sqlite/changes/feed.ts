import { changesExpired, snapshotUnsupported } from '../../../base/errors.ts';
import { KEY, type Identity } from '../../bookmark.ts';
import type { ChangedInScope, ChangeFeed, FeedPlace, FeedSize, ScopeLog } from '../../change-feed.ts';
import type { ScopePredicate } from '../../scope/predicate.ts';
import type { CollectionLooks } from '../read/collection-looks.ts';
import type { Core } from '../core.ts';
import { placeOf, placeOfSealed, sealedTokenOf, tokenOf, type LogPlace } from './place.ts';
import type { Reads } from '../read/reads.ts';
import type { CollectionRecord } from '../file/collections.ts';
import type { Slots } from '../../turns/slots.ts';

/** The log has to be asked to keep rows before their changes. */
const WISH_IS_DUE = Symbol('wish is due');

/** The changes of a collection, or of a scope of it. From its first call on, the log keeps for a scope rows as they were. */
export class Feed implements ScopeLog {
  readonly #core: Core;
  readonly #looks: CollectionLooks;
  readonly #reads: Reads;
  readonly #scope: ScopePredicate | null;
  readonly slots: Slots;
  readonly lookUp: ChangeFeed['lookUp'] = (keys, plan, size, signal) =>
    this.#reads.lookUp(keys, plan, size, signal);

  /** `scope`: null for all rows of the collection. */
  constructor(looks: CollectionLooks, reads: Reads, scope: ScopePredicate | null = null) {
    this.#core = looks.core;
    this.slots = looks.core.options.slots;
    this.#looks = looks;
    this.#reads = reads;
    this.#scope = scope;
  }

  within(scope: ScopePredicate): ScopeLog {
    return new Feed(this.#looks, this.#reads, scope);
  }

  /** The log can always be asked to keep rows. */
  refusal(): Promise<null> {
    return Promise.resolve(null);
  }

  /** Never called: the embedded store has no points in time. */
  at(): FeedPlace {
    throw snapshotUnsupported();
  }

  now(signal: AbortSignal): Promise<FeedPlace> {
    const { epochs, log } = this.#core;
    const look = (collection: CollectionRecord): FeedPlace => {
      const { last } = log.state(collection);
      const place = { epoch: epochs.latest(), tables: collection.number, sequence: last, seen: last };
      return { token: this.#tokenOf(place) };
    };
    return this.#lookAt(look, signal);
  }

  reaches(place: FeedPlace, other: FeedPlace): boolean {
    const own = this.#placeOf(place.token);
    const others = this.#placeOf(other.token);
    return own.epoch === others.epoch && own.tables === others.tables && own.sequence >= others.sequence;
  }

  async read(
    { token }: FeedPlace,
    { most, waitMs }: FeedSize,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<ChangedInScope> {
    const { watch, options } = this.#core;
    const end = options.now() + waitMs;
    for (let isWoken = false; ; isWoken = true) {
      const look = (collection: CollectionRecord) => this.#readIn(collection, this.#placeOf(token), most);
      const { last, logged, next, seen } = await this.#lookAt(look, signal, isWoken, identity);
      const left = end - options.now();
      const { ids: keys, matchedBefore } = logged;
      const isUpToDate = next.sequence >= last;
      if (keys.length > 0 || left <= 0)
        return { keys, matchedBefore, next: { token: this.#tokenOf(next) }, isUpToDate };
      await watch.wait(this.#version, seen, left, signal);
    }
  }

  /** In a look. */
  #readIn(collection: CollectionRecord, { epoch, tables: number, sequence, seen }: LogPlace, most: number) {
    const { epochs, log } = this.#core;
    const { last, floor } = log.state(collection);
    const end = epochs.endOf(epoch, collection.number);
    const since = this.#scope && collection.before ? Math.max(floor, collection.before.since) : floor;
    if (end === null || number !== collection.number || sequence < since || seen > Math.min(end, last))
      throw changesExpired();
    const logged = log.read(collection, sequence, most, this.#scope);
    const next = { epoch: epochs.latest(), tables: collection.number, sequence: logged.next, seen: last };
    return { last, logged, next, seen: versionOf(collection, last) };
  }

  /** The state of the log. One function for all who wait, so that it is looked at once. */
  readonly #version = (): string => {
    const { log, looks, collections } = this.#core;
    return looks.now(() => {
      const collection = collections.get(this.#looks.shape.name);
      return versionOf(collection, log.state(collection).last);
    });
  };

  #placeOf(token: Uint8Array): LogPlace {
    return this.#scope ? placeOfSealed(token, this.#core.file.secret) : placeOf(token);
  }

  #tokenOf(place: LogPlace): Uint8Array {
    return this.#scope ? sealedTokenOf(place, this.#core.file.secret) : tokenOf(place);
  }

  /** Looks, when the log keeps the rows that a scope needs. `isPatient`: others go first. */
  async #lookAt<T>(
    look: (collection: CollectionRecord) => T,
    signal: AbortSignal,
    isPatient = false,
    identity?: Identity,
  ): Promise<T> {
    const { log, looks, collections, writes } = this.#core;
    const plan = { sort: KEY, direction: 1, ...(identity !== undefined && { identity }) } as const;
    const lookIn = (): T | typeof WISH_IS_DUE => {
      const collection = this.#looks.present(plan);
      return this.#scope && log.isWishDue(collection) ? WISH_IS_DUE : look(collection);
    };
    for (;;) {
      const seen = await looks.take(lookIn, signal, isPatient);
      if (seen !== WISH_IS_DUE) return seen;
      signal.throwIfAborted();
      await writes.run(() => log.keepRows(collections.get(this.#looks.shape.name)));
    }
  }
}

function versionOf({ number, identity }: CollectionRecord, last: number): string {
  return `${number} ${identity} ${last}`;
}
