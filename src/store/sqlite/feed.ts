import { changesExpired, snapshotUnsupported } from '../../errors.ts';
import { KEY, type Identity } from '../bookmark.ts';
import type { ChangedInScope, FeedPlace, FeedSize, ScopeLog } from '../change-feed.ts';
import type { ScopePredicate } from '../scope-predicate.ts';
import type { Core } from './core.ts';
import { placeOf, placeOfSealed, sealedTokenOf, tokenOf, type LogPlace } from './place.ts';
import type { SetReads } from './set-reads.ts';
import type { SetRecord, SetShape } from './sets.ts';

/** The log has to be asked to keep rows before their changes. */
const WISH_IS_DUE = Symbol('wish is due');

/** The changes of a set, or of a scope of it. From its first call on, the log keeps for a scope rows as they were. */
export function setFeed(
  core: Core,
  shape: SetShape,
  reads: SetReads,
  scope: ScopePredicate | null = null,
): ScopeLog {
  const { epochs, file, log, looks, sets, watch, writes } = core;
  const { now: clock } = core.options;
  const { name } = shape;

  return {
    within: (other) => setFeed(core, shape, reads, other),
    /** The log can always be asked to keep rows. */
    refusal: () => Promise.resolve(null),
    /** Never called: the embedded store has no points in time. */
    at: () => {
      throw snapshotUnsupported();
    },
    lookUp: reads.lookUp,
    ...{ now, reaches, read },
  };

  function now(signal: AbortSignal): Promise<FeedPlace> {
    const look = (set: SetRecord): FeedPlace => {
      const { last } = log.state(set);
      return { token: tokenOfPlace({ epoch: epochs.latest(), set: set.number, sequence: last, seen: last }) };
    };
    return lookAt(look, signal);
  }

  function reaches(place: FeedPlace, other: FeedPlace): boolean {
    const [own, others] = [placeOfToken(place.token), placeOfToken(other.token)];
    return own.epoch === others.epoch && own.set === others.set && own.sequence >= others.sequence;
  }

  async function read(
    { token }: FeedPlace,
    { most, waitMs }: FeedSize,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<ChangedInScope> {
    const end = clock() + waitMs;
    for (let isWoken = false; ; isWoken = true) {
      const look = (set: SetRecord) => readIn(set, placeOfToken(token), most);
      const { last, logged, next, seen } = await lookAt(look, signal, isWoken, identity);
      const left = end - clock();
      const { ids: keys, matchedBefore } = logged;
      if (keys.length > 0 || left <= 0)
        return {
          ...{ keys, matchedBefore },
          next: { token: tokenOfPlace(next) },
          isUpToDate: next.sequence >= last,
        };
      await watch.wait(version, seen, left, signal);
    }
  }

  /** In a look. */
  function readIn(set: SetRecord, place: LogPlace, most: number) {
    const { last, floor } = log.state(set);
    const { sequence, seen } = place;
    const end = epochs.endOf(place.epoch, set.number);
    const since = scope && set.before ? Math.max(floor, set.before.since) : floor;
    if (end === null || place.set !== set.number || sequence < since || seen > Math.min(end, last))
      throw changesExpired();
    const logged = log.read(set, sequence, most, scope);
    const next = { epoch: epochs.latest(), set: set.number, sequence: logged.next, seen: last };
    return { last, logged, next, seen: versionOf(set, last) };
  }

  /** The state of the log. One function for all who wait, so that it is looked at once. */
  function version(): string {
    return looks.now(() => {
      const set = sets.get(name);
      return versionOf(set, log.state(set).last);
    });
  }

  function placeOfToken(token: Uint8Array): LogPlace {
    return scope ? placeOfSealed(token, file.secret) : placeOf(token);
  }

  function tokenOfPlace(place: LogPlace): Uint8Array {
    return scope ? sealedTokenOf(place, file.secret) : tokenOf(place);
  }

  /** Looks, when the log keeps the rows that a scope needs. `isPatient`: others go first. */
  async function lookAt<T>(
    look: (set: SetRecord) => T,
    signal: AbortSignal,
    isPatient = false,
    identity?: Identity,
  ): Promise<T> {
    const plan = { sort: KEY, direction: 1, ...(identity !== undefined && { identity }) } as const;
    for (;;) {
      const seen = await looks.take(
        () => {
          const set = reads.present(plan);
          return scope && log.isWishDue(set) ? WISH_IS_DUE : look(set);
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
