import { changesExpired, collectionReplaced, snapshotUnsupported } from '../../errors.ts';
import type { Batch } from '../batch.ts';
import { KEY, type Bookmark, type Identity } from '../bookmark.ts';
import type { ChangedOfPart, FeedPlace, FeedSize, Part, PartFeed } from '../change-feed.ts';
import type { Slots } from '../slots.ts';
import type { Plan, Size } from '../store.ts';
import { hasValues, wantedOf } from './keyed.ts';
import type { ChangeLog, LoggedIds, LogPart } from './log.ts';
import { RowLookUp } from './look-up.ts';
import type { Looks } from './looks.ts';
import { placeOf, placeOfSealed, sealedTokenOf, tokenOf, type LogPlace } from './place.ts';
import type { Reader } from './read.ts';
import type { SetRecord, Sets } from './sets.ts';
import type { LogWatch } from './watch.ts';
import type { Writes } from './writes.ts';

export interface SetFeedOptions {
  readonly name: string;
  readonly sets: Sets;
  readonly log: ChangeLog;
  readonly looks: Looks;
  readonly writes: Writes;
  readonly watch: LogWatch;
  readonly reader: Reader;
  readonly slots: Slots;
  /** A clock in milliseconds. */
  readonly now: () => number;
  /** In a look: the set, which must be whole, and whose index for the plan must be usable. */
  readonly present: (plan: Plan) => SetRecord;
  /** What places are made with: the epoch of the file's history and the secret of sealed places. */
  readonly epoch: () => string;
  readonly secret: () => Uint8Array;
}

/** What was read of a log: the ids after a number, at most so many, when the log ended with `last`. */
interface Known {
  readonly set: number;
  readonly after: number;
  readonly last: number;
  readonly most: number;
  readonly logged: LoggedIds;
}

const ALL: Plan = { sort: KEY, direction: 1 };
/** The log has to be asked to keep rows before their changes. */
const WISH_IS_DUE = Symbol('wish is due');

/** The changes of a set. See ChangeFeed. */
export class SetFeed implements PartFeed {
  readonly #options: SetFeedOptions;
  readonly #part: LogPart | null;
  /** What was read last: readers that a transaction wakes together want the same. */
  #known: Known | null = null;

  constructor(options: SetFeedOptions, part: LogPart | null = null) {
    this.#options = options;
    this.#part = part;
  }

  /** See ChangeFeed. From its first call on, the log keeps rows as they were before their changes. */
  within({ where, hide }: Part): PartFeed {
    const wanted = wantedOf(where);
    return new SetFeed(this.#options, { includes: (row) => hasValues(row, wanted), hide });
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
        sequence: this.#options.log.state(set).last,
      };
      return { token: this.#tokenOf(place) };
    }, signal);
  }

  /** Never called: the embedded store has no points in time. */
  at(): FeedPlace {
    throw snapshotUnsupported();
  }

  async read(
    { token }: FeedPlace,
    { most, waitMs }: FeedSize,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<ChangedOfPart> {
    const { now, watch } = this.#options;
    const end = now() + waitMs;
    let lastAtCall: number | null = null;
    for (let isWoken = false; ; isWoken = true) {
      const look = (set: SetRecord) => this.#read(set, this.#placeOf(token), most, identity);
      const { last, logged, next, version } = await this.#look(look, signal, isWoken, identity);
      lastAtCall ??= last;
      const left = end - now();
      const { ids: keys, wereInside } = logged;
      if (keys.length > 0 || left <= 0)
        return {
          ...{ keys, wereInside },
          next: { token: this.#tokenOf(next) },
          isUpToDate: next.sequence >= lastAtCall,
        };
      await watch.wait(this.#version, version, left, signal);
    }
  }

  /** See ChangeFeed.rows. */
  rows(keys: readonly Bookmark[], plan: Plan, size: Size, signal: AbortSignal): AsyncIterable<Batch> {
    return new RowLookUp(this.#options, keys, plan).batches(size, signal);
  }

  /** In a look. */
  #read(set: SetRecord, place: LogPlace, most: number, identity: Identity | undefined) {
    const { log } = this.#options;
    if (identity !== undefined && identity !== set.identity) throw collectionReplaced();
    const { last, floor } = log.state(set);
    const { epoch, sequence } = place;
    // A place ahead of the log is one of a file that was put back to an earlier state.
    const since = this.#part && set.before ? Math.max(floor, set.before.since) : floor;
    if (epoch !== this.#options.epoch() || place.set !== set.number || sequence < since || sequence > last)
      throw changesExpired();
    const logged = this.#idsAfter(set, { set: set.number, after: sequence, last, most });
    return { last, logged, next: { ...place, sequence: logged.next }, version: versionOf(set, last) };
  }

  /** In a look. A log is only added to, so what is read of it is the same while it ends with the same number. */
  #idsAfter(set: SetRecord, wanted: Omit<Known, 'logged'>): LoggedIds {
    const { after, last, most } = wanted;
    const known = this.#known;
    if (known?.set === set.number && known.after === after && known.last === last && isEnough(known, most))
      return known.logged;
    const logged = this.#options.log.read(set, after, most, this.#part ?? undefined);
    this.#known = { ...wanted, logged };
    return logged;
  }

  readonly #version = (): string => {
    const { sets, log, name, looks } = this.#options;
    return looks.now(() => {
      const set = sets.get(name);
      return versionOf(set, log.state(set).last);
    });
  };

  #placeOf(token: Uint8Array): LogPlace {
    return this.#part ? placeOfSealed(token, this.#options.secret()) : placeOf(token);
  }

  #tokenOf(place: LogPlace): Uint8Array {
    return this.#part ? sealedTokenOf(place, this.#options.secret()) : tokenOf(place);
  }

  /** Looks, when the log keeps the rows that a part needs. `isPatient`: others go first. */
  async #look<T>(
    look: (set: SetRecord) => T,
    signal: AbortSignal,
    isPatient = false,
    identity?: Identity,
  ): Promise<T> {
    const { log, looks, writes, present, sets, name } = this.#options;
    for (;;) {
      const seen = await looks.take(
        () => {
          const current = sets.get(name);
          if (identity !== undefined && identity !== current.identity) throw collectionReplaced();
          const set = present(ALL);
          return this.#part && log.isWishDue(set) ? WISH_IS_DUE : look(set);
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

/** Whether a reader that wants at most `most` ids would read the same. */
function isEnough({ last, most: before, logged }: Known, most: number): boolean {
  return most === before || (logged.next === last && logged.ids.length < most);
}

function versionOf({ number, identity }: SetRecord, last: number): string {
  return `${number} ${identity} ${last}`;
}
