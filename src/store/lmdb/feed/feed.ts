import { changesExpired, collectionReplaced, snapshotUnsupported } from '../../../errors.ts';
import type { Batch } from '../../batch.ts';
import type { Bookmark, Identity } from '../../bookmark.ts';
import type { ChangedKeys, ChangeFeed, FeedPlace, FeedSize } from '../../change-feed.ts';
import type { Slots } from '../../slots.ts';
import type { Plan, Size } from '../../store.ts';
import type { FairScheduler } from '../fair-scheduler.ts';
import { RowSize } from '../filler.ts';
import type { Key } from '../keys.ts';
import type { Database, Tables } from '../tables.ts';
import type { ChangeLog, LoggedIds } from './log.ts';
import { RowLookUp } from './look-up.ts';
import { placeOf, tokenOf, type LogPlace } from './place.ts';
import type { LogWatch } from './watch.ts';

/** What a set is at present. */
export interface PresentSet {
  /** The number of its log. */
  readonly number: number;
  readonly identity?: Identity;
}

/** The set whose changes a feed tells. */
export interface FeedSet {
  /** The table of its rows. */
  readonly rows: Database;
  /** Begins a look at the file. Throws when that cannot be read. */
  present(): PresentSet;
  /** After `present`: throws while the rows are being loaded. */
  assertWhole(): void;
  /** After `present`: the key of the row with an id. Null when no row can have it. */
  keyOfId(id: Bookmark, set: PresentSet): Key | null;
  /** After `present`: throws when reads by a plan reject. */
  checkPlan(plan: Plan): void;
}

export interface LmdbFeedOptions {
  readonly tables: Tables;
  readonly log: ChangeLog;
  readonly watch: LogWatch;
  readonly slots: Slots;
  readonly scheduler: FairScheduler;
  /** A clock in milliseconds. */
  readonly now: () => number;
  /** Translates the errors of lmdb. */
  readonly told: <T>(work: Promise<T>) => Promise<T>;
}

/** What was read of a log: the ids after a number, at most so many, when the log ended with `last`. */
interface Known {
  readonly set: number;
  readonly after: number;
  readonly last: number;
  readonly most: number;
  readonly logged: LoggedIds;
}

/** The changes of a set of the embedded store. See ChangeFeed. */
export class LmdbFeed implements ChangeFeed {
  readonly #set: FeedSet;
  readonly #options: LmdbFeedOptions;
  readonly #rowSize = new RowSize();
  /** What was read last: readers that a transaction wakes together want the same. */
  #known: Known | null = null;

  constructor(set: FeedSet, options: LmdbFeedOptions) {
    this.#set = set;
    this.#options = options;
  }

  now(signal: AbortSignal): Promise<FeedPlace> {
    return this.#look(() => {
      const set = this.#set.present();
      this.#set.assertWhole();
      return this.#placeAt(set, this.#options.log.state(set.number).last);
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
  ): Promise<ChangedKeys> {
    const place = placeOf(token);
    const { now, watch, told } = this.#options;
    const end = now() + waitMs;
    let lastAtCall: number | null = null;
    for (let isWoken = false; ; isWoken = true) {
      const look = () => this.#read(place, most, identity);
      const { last, keys, next, version } = await this.#look(look, signal, isWoken);
      lastAtCall ??= last;
      const left = end - now();
      if (keys.length > 0 || left <= 0)
        return {
          keys,
          next: { token: tokenOf({ ...place, sequence: next }) },
          isUpToDate: next >= lastAtCall,
        };
      await told(watch.wait(this.#version, version, left, signal));
    }
  }

  rows(keys: readonly Bookmark[], plan: Plan, size: Size, signal: AbortSignal): AsyncIterable<Batch> {
    const lookUp = new RowLookUp(this.#set, { ...this.#options, rowSize: this.#rowSize }, keys, plan);
    return lookUp.batches(size, signal);
  }

  /** In a look. */
  #read(place: LogPlace, most: number, identity: Identity | undefined) {
    const { log } = this.#options;
    const set = this.#set.present();
    if (identity !== undefined && identity !== set.identity) throw collectionReplaced();
    this.#set.assertWhole();
    const { last, floor } = log.state(set.number);
    const { epoch, sequence } = place;
    // A place ahead of the log is one of a file that was put back to an earlier state.
    if (epoch !== log.epoch || place.set !== set.number || sequence < floor || sequence > last)
      throw changesExpired();
    const { ids, next } = this.#idsAfter({ set: set.number, after: sequence, last, most });
    return { last, keys: ids, next, version: versionOf(set, last) };
  }

  /** In a look. A log is only added to, so what is read of it is the same while it ends with the same number. */
  #idsAfter(wanted: Omit<Known, 'logged'>): LoggedIds {
    const { set, after, last, most } = wanted;
    const known = this.#known;
    if (known?.set === set && known.after === after && known.last === last && isEnough(known, most))
      return known.logged;
    const logged = this.#options.log.read(set, after, most);
    this.#known = { ...wanted, logged };
    return logged;
  }

  readonly #version = (): string => {
    const set = this.#set.present();
    return versionOf(set, this.#options.log.state(set.number).last);
  };

  #placeAt({ number }: PresentSet, sequence: number): FeedPlace {
    return { token: tokenOf({ epoch: this.#options.log.epoch, set: number, sequence }) };
  }

  /** `isPatient`: others go first, because a reader was waiting anyway. */
  #look<T>(look: () => T, signal: AbortSignal, isPatient = false): Promise<T> {
    const { scheduler, told } = this.#options;
    return told(scheduler.take(look, signal, isPatient));
  }
}

/** Whether a reader that wants at most `most` ids would read the same. */
function isEnough({ last, most: before, logged }: Known, most: number): boolean {
  return most === before || (logged.next === last && logged.ids.length < most);
}

function versionOf({ number, identity = '' }: PresentSet, last: number): string {
  return `${number} ${identity} ${last}`;
}
