import { changesExpired, collectionReplaced, snapshotUnsupported } from '../../errors.ts';
import { KEY, type Bookmark, type Identity } from '../bookmark.ts';
import type { ChangedInScope, ChangeFeed, FeedPlace, FeedSize, LookedUp, ScopeLog } from '../change-feed.ts';
import { lastPage } from '../last-page.ts';
import type { ScopePredicate } from '../scope-predicate.ts';
import type { Plan, Size } from '../store.ts';
import type { ChangeLog, LoggedIds } from './log.ts';
import type { SetParts } from './set-parts.ts';
import { placeOf, placeOfSealed, sealedTokenOf, tokenOf, type LogPlace } from './place.ts';
import type { SetLooks } from './set-looks.ts';
import type { SetReads } from './set-reads.ts';
import type { SetRecord } from './sets.ts';

const ALL: Plan = { sort: KEY, direction: 1 };
/** The log has to be asked to keep rows before their changes. */
const WISH_IS_DUE = Symbol('wish is due');

/** The changes of a set. See ChangeFeed. */
export class SetFeed implements ChangeFeed {
  readonly #options: SetParts;
  readonly #log: ChangeLog;
  readonly #setLooks: SetLooks;
  readonly #reads: SetReads;
  readonly #scope: ScopePredicate | null;
  readonly #lastPage = lastPage<LoggedIds>();

  constructor(
    options: SetParts,
    log: ChangeLog,
    setLooks: SetLooks,
    reads: SetReads,
    scope: ScopePredicate | null = null,
  ) {
    [this.#options, this.#log, this.#setLooks, this.#reads] = [options, log, setLooks, reads];
    this.#scope = scope;
  }

  /** See ChangeFeed. From its first call on, the log keeps rows as they were before their changes. */
  within(scope: ScopePredicate): ScopeLog {
    return new SetFeed(this.#options, this.#log, this.#setLooks, this.#reads, scope);
  }

  /** The log can always be asked to keep rows. */
  refusal(): Promise<null> {
    return Promise.resolve(null);
  }

  now(signal: AbortSignal): Promise<FeedPlace> {
    return this.#look((set) => {
      const place = {
        epoch: this.#options.epoch(),
        set: set.number,
        sequence: this.#log.state(set).last,
      };
      return { token: this.#tokenOf(place) };
    }, signal);
  }

  /** Never called: the embedded store has no points in time. */
  at(): FeedPlace {
    throw snapshotUnsupported();
  }

  reaches(place: FeedPlace, other: FeedPlace): boolean {
    const [own, others] = [this.#placeOf(place.token), this.#placeOf(other.token)];
    return own.epoch === others.epoch && own.set === others.set && own.sequence >= others.sequence;
  }

  async read(
    { token }: FeedPlace,
    { most, waitMs }: FeedSize,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<ChangedInScope> {
    const { now, watch } = this.#options;
    const end = now() + waitMs;
    let lastAtCall: number | null = null;
    for (let isWoken = false; ; isWoken = true) {
      const look = (set: SetRecord) => this.#read(set, this.#placeOf(token), most, identity);
      const { last, logged, next, version } = await this.#look(look, signal, isWoken, identity);
      lastAtCall ??= last;
      const left = end - now();
      const { ids: keys, matchedBefore } = logged;
      if (keys.length > 0 || left <= 0)
        return {
          ...{ keys, matchedBefore },
          next: { token: this.#tokenOf(next) },
          isUpToDate: next.sequence >= lastAtCall,
        };
      await watch.wait(this.#version, version, left, signal);
    }
  }

  /** See ChangeFeed. */
  lookUp(keys: readonly Bookmark[], plan: Plan, size: Size, signal: AbortSignal): Promise<LookedUp> {
    return this.#reads.lookUp(keys, plan, size, signal);
  }

  /** In a look. */
  #read(set: SetRecord, place: LogPlace, most: number, identity: Identity | undefined) {
    const log = this.#log;
    if (identity !== undefined && identity !== set.identity) throw collectionReplaced();
    const { last, floor } = log.state(set);
    const { epoch, sequence } = place;
    // A place ahead of the log is one of a file that was put back to an earlier state.
    const since = this.#scope && set.before ? Math.max(floor, set.before.since) : floor;
    if (epoch !== this.#options.epoch() || place.set !== set.number || sequence < since || sequence > last)
      throw changesExpired();
    const logged = this.#lastPage(`${set.number} ${sequence} ${last}`, most, () =>
      log.read(set, sequence, most, this.#scope),
    );
    return { last, logged, next: { ...place, sequence: logged.next }, version: versionOf(set, last) };
  }

  readonly #version = (): string => {
    const { sets, name, looks } = this.#options;
    return looks.now(() => {
      const set = sets.get(name);
      return versionOf(set, this.#log.state(set).last);
    });
  };

  #placeOf(token: Uint8Array): LogPlace {
    return this.#scope ? placeOfSealed(token, this.#options.secret) : placeOf(token);
  }

  #tokenOf(place: LogPlace): Uint8Array {
    return this.#scope ? sealedTokenOf(place, this.#options.secret) : tokenOf(place);
  }

  /** Looks, when the log keeps the rows that a scope needs. `isPatient`: others go first. */
  async #look<T>(
    look: (set: SetRecord) => T,
    signal: AbortSignal,
    isPatient = false,
    identity?: Identity,
  ): Promise<T> {
    const { looks, writes, sets, name } = this.#options;
    const log = this.#log;
    for (;;) {
      const seen = await looks.take(
        () => {
          const current = sets.get(name);
          if (identity !== undefined && identity !== current.identity) throw collectionReplaced();
          const set = this.#setLooks.present(ALL);
          return this.#scope && log.isWishDue(set) ? WISH_IS_DUE : look(set);
        },
        signal,
        isPatient,
      );
      if (seen !== WISH_IS_DUE) return seen;
      signal.throwIfAborted();
      await writes.run(() => log.keepRows(sets.get(name)));
    }
  }
}

function versionOf({ number, identity }: SetRecord, last: number): string {
  return `${number} ${identity} ${last}`;
}
