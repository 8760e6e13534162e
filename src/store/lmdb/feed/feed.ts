import { AppError, changesExpired, collectionReplaced, snapshotUnsupported } from '../../../errors.ts';
import type { Batch } from '../../batch.ts';
import type { Bookmark, Identity } from '../../bookmark.ts';
import type { ChangedOfPart, FeedPlace, FeedSize, Part, PartFeed } from '../../change-feed.ts';
import type { Slots } from '../../slots.ts';
import type { Plan, Size } from '../../store.ts';
import type { Commits } from '../commits.ts';
import type { FairScheduler } from '../fair-scheduler.ts';
import { RowSize } from '../filler.ts';
import type { Key } from '../../keys.ts';
import type { Database, Tables } from '../tables.ts';
import { digestOfValues } from './before.ts';
import type { ChangeLog, LoggedIds, PartOfLog } from './log.ts';
import { RowLookUp } from './look-up.ts';
import { placeOf, tokenOf, type LogPlace } from './place.ts';
import { placeOfSealed, sealedTokenOf } from './sealed-place.ts';
import { viewOf, type View } from '../../part-view.ts';
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
  readonly commits: Pick<Commits, 'run'>;
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

const TOO_MANY_PARTS =
  'Keys open parts of this resource by too many different fields: the embedded store tells the changes of 32.';

/** The part whose readers a feed is for. */
interface OwnPart {
  readonly view: View;
  readonly digest: Uint8Array;
}

/** The log does not note the feed's view, or only as one that is about to be dropped. */
const VIEW_IS_DUE = Symbol('view is due');

/** The changes of a set of the embedded store. See ChangeFeed. */
export class LmdbFeed implements PartFeed {
  readonly #set: FeedSet;
  readonly #options: LmdbFeedOptions;
  readonly #part: OwnPart | null;
  readonly #rowSize = new RowSize();
  /** What was read last: readers that a transaction wakes together want the same. */
  #known: Known | null = null;

  constructor(set: FeedSet, options: LmdbFeedOptions, part: OwnPart | null = null) {
    this.#set = set;
    this.#options = options;
    this.#part = part;
  }

  /** See ChangeFeed. From its first call on, the log notes what rows were before their changes. */
  within(part: Part): PartFeed {
    const own = { view: viewOf(part), digest: digestOfValues(part.where) };
    return new LmdbFeed(this.#set, this.#options, own);
  }

  async refusal(signal: AbortSignal): Promise<string | null> {
    try {
      await this.now(signal);
      return null;
    } catch (error) {
      if (error instanceof AppError && error.code === 'forbidden') return error.message;
      throw error;
    }
  }

  now(signal: AbortSignal): Promise<FeedPlace> {
    return this.#lookInView((set) => {
      this.#set.assertWhole();
      const { log } = this.#options;
      const place = { epoch: log.epoch, set: set.number, sequence: log.state(set.number).last };
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
    const { now, watch, told } = this.#options;
    const end = now() + waitMs;
    let lastAtCall: number | null = null;
    for (let isWoken = false; ; isWoken = true) {
      const look = (set: PresentSet) => this.#read(set, this.#placeOf(token), most, identity);
      const { last, logged, next, version } = await this.#lookInView(look, signal, isWoken);
      lastAtCall ??= last;
      const left = end - now();
      const { ids: keys, wereInside } = logged;
      if (keys.length > 0 || left <= 0)
        return {
          ...{ keys, wereInside },
          next: { token: this.#tokenOf(next) },
          isUpToDate: next.sequence >= lastAtCall,
        };
      await told(watch.wait(this.#version, version, left, signal));
    }
  }

  rows(keys: readonly Bookmark[], plan: Plan, size: Size, signal: AbortSignal): AsyncIterable<Batch> {
    const lookUp = new RowLookUp(this.#set, { ...this.#options, rowSize: this.#rowSize }, keys, plan);
    return lookUp.batches(size, signal);
  }

  /** In a look. */
  #read(set: PresentSet, place: LogPlace, most: number, identity: Identity | undefined) {
    const { log } = this.#options;
    if (identity !== undefined && identity !== set.identity) throw collectionReplaced();
    this.#set.assertWhole();
    const { last, floor } = log.state(set.number);
    const own = this.#part;
    const view = own && log.views.find(set.number, own.view);
    const { epoch, sequence } = place;
    // A place ahead of the log is one of a file that was put back to an earlier state.
    if (epoch !== log.epoch || place.set !== set.number || sequence < floor || sequence > last)
      throw changesExpired();
    if (view && sequence < view.since) throw changesExpired();
    const part = view ? { view: view.number, digest: own.digest } : undefined;
    const logged = this.#idsAfter({ set: set.number, after: sequence, last, most }, part);
    return { last, logged, next: { ...place, sequence: logged.next }, version: versionOf(set, last) };
  }

  /** In a look. A log is only added to, so what is read of it is the same while it ends with the same number. */
  #idsAfter(wanted: Omit<Known, 'logged'>, part: PartOfLog | undefined): LoggedIds {
    const { set, after, last, most } = wanted;
    const known = this.#known;
    if (known?.set === set && known.after === after && known.last === last && isEnough(known, most))
      return known.logged;
    const logged = this.#options.log.read(set, after, most, part);
    this.#known = { ...wanted, logged };
    return logged;
  }

  readonly #version = (): string => {
    const set = this.#set.present();
    return versionOf(set, this.#options.log.state(set.number).last);
  };

  #placeOf(token: Uint8Array): LogPlace {
    return this.#part ? placeOfSealed(token, this.#options.log.views.secret) : placeOf(token);
  }

  #tokenOf(place: LogPlace): Uint8Array {
    return this.#part ? sealedTokenOf(place, this.#options.log.views.secret) : tokenOf(place);
  }

  /** Looks when the log notes the view of the part. Rejects with `forbidden` when it has too many of them. */
  async #lookInView<T>(look: (set: PresentSet) => T, signal: AbortSignal, isPatient = false): Promise<T> {
    const part = this.#part;
    const { log, commits } = this.#options;
    for (;;) {
      let number = 0;
      const seen = await this.#look(
        () => {
          const set = this.#set.present();
          number = set.number;
          return part && log.views.isDue(number, part.view) ? VIEW_IS_DUE : look(set);
        },
        signal,
        isPatient,
      );
      if (seen !== VIEW_IS_DUE) return seen;
      signal.throwIfAborted();
      if (part && !(await commits.run(() => log.views.keep(number, part.view, log.state(number).last))))
        throw new AppError('forbidden', TOO_MANY_PARTS);
    }
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
