import { collectionReplaced, noSuchPlace, snapshotUnsupported } from '../../errors.ts';
import { documentOf, type Batch, type ReadBatch } from '../batch.ts';
import { bookmarkOf, KEY, keyPaths, type Bookmark } from '../bookmark.ts';
import type { LookedUp } from '../change-feed.ts';
import { KEY_INDEX, type Index } from '../indexes.ts';
import type { Description, From, Plan, Size } from '../store.ts';
import { compareKeys, joinKeys } from '../keys.ts';
import { hasValues, keyAt, keyOfNamed, wantedOf } from '../has-values.ts';
import { DamagedRowError, documentIn } from './checked-rows.ts';
import { keyOfRow } from './keyed.ts';
import type { SetParts } from './set-parts.ts';
import { boundsBehind, keysOfBookmark, prefixOf, rangeOf, type Range } from './range.ts';
import { isSingle, type SetLook, type SetLooks } from './set-looks.ts';
import { indexOf, type SetRecord } from './sets.ts';

/** How long a list of indexes, and what is known with it, stands for the collection. Milliseconds. */
const LISTED_MS = 1_000;
/** Entries of an index that one look passes over: about 2 ms. */
const PASSED_AT_ONCE = 40_000;
/** Rows looked up in one look: about 4 ms. */
const LOOKED_UP_AT_ONCE = 512;
const ONE: Size = { rows: 1, bytes: 1 };

/** How far a walk over all rows of a set has come: the number of rows, and the end of the log at that time. */
interface Walked {
  readonly rows: number;
  readonly state: string;
}

export class SetReads {
  readonly #options: SetParts;
  readonly #setLooks: SetLooks;
  /** By the bookmark that the walk goes on from. */
  readonly #walked = new WeakMap<Bookmark, Walked>();
  #listed: {
    readonly records: SetRecord['indexes'];
    readonly text: string;
    readonly at: number;
    readonly indexes: readonly Index[];
  } | null = null;

  constructor(options: SetParts, setLooks: SetLooks) {
    [this.#options, this.#setLooks] = [options, setLooks];
  }

  /** See RowReader.read. */
  read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<ReadBatch> {
    if (plan.at !== undefined) throw snapshotUnsupported();
    if (plan.since !== undefined) throw noSuchPlace(); // only MongoDB has such times
    if (from.after && from.skip)
      throw new TypeError('a read begins after a row or after a number of rows, not both');
    signal.throwIfAborted();
    return this.#setLooks.within(plan, async (look) => {
      const proved = ({ identity }: SetRecord, batch: Batch): ReadBatch => ({
        ...{ ...batch, identity },
        confirm: () => this.#setLooks.confirm(plan, identity),
      });
      if (isSingle(plan))
        return look((set) => proved(set, this.single(set, plan, from)), signal, size.patient);
      const { skip = 0 } = from;
      const isFar = skip > PASSED_AT_ONCE;
      const passed = isFar
        ? await this.pass(look, await this.begin(look, plan, from, signal), skip, signal)
        : null;
      const read = (set: SetRecord): ReadBatch => {
        const range = passed ? passed.rest : rangeOf(set, plan, from.after);
        const found = this.#options.reader.batch(
          range,
          passed ? 0 : skip,
          size,
          plan,
          set.hasLargeRows === true,
        );
        return proved(set, this.#counted(set, plan, from, found));
      };
      return look(read, signal, size.patient);
    });
  }

  /** The range of a plan's rows, for `pass`. */
  begin(look: SetLook, plan: Plan, from: From, signal: AbortSignal): Promise<Range | null> {
    return look((set) => rangeOf(set, plan, from.after), signal);
  }

  /**
   * Passes over the first rows of a range in bounded looks, at most `most`, and as long as it may go on. Returns what is
   * behind them: null when the range has no more.
   */
  async pass(
    look: SetLook,
    range: Range | null,
    most: number,
    signal: AbortSignal,
    mayGoOn: () => boolean = () => true,
  ): Promise<{ readonly rows: number; readonly rest: Range | null }> {
    let [rest, rows] = [range, 0];
    while (rest && rows < most && (rows === 0 || mayGoOn())) {
      const [next, some]: [Range, number] = [rest, Math.min(most - rows, PASSED_AT_ONCE)];
      const passed = await look(() => this.#options.reader.pass(next, some), signal);
      [rest, rows] = [passed.rest, rows + passed.rows];
    }
    return { rows, rest };
  }

  /** See ChangeFeed. */
  lookUp(keys: readonly Bookmark[], plan: Plan, size: Size, signal: AbortSignal): Promise<LookedUp> {
    if (plan.at !== undefined) throw snapshotUnsupported();
    const { looks, reader, sets, name } = this.#options;
    const wanted = wantedOf(plan.equals);
    const look = (): LookedUp => {
      const { identity } = sets.get(name);
      if (plan.identity !== undefined && plan.identity !== identity) throw collectionReplaced();
      const { number } = this.#setLooks.present({ ...plan, index: KEY_INDEX });
      const rows: Uint8Array[] = [];
      let [taken, length] = [0, 0];
      for (const id of keys.slice(0, LOOKED_UP_AT_ONCE)) {
        if (rows.length >= size.rows || length >= size.bytes) break;
        taken++;
        const key = keyOfRow(id);
        const row = key && reader.row(number, key);
        if (!row || !hasValues(documentIn(row), wanted)) continue;
        rows.push(row);
        length += row.length;
      }
      // The rows of the other keys may be gone, so nothing is known of what follows.
      const batch = rows.length === 0 ? null : { ...reader.batchOf(rows, taken < keys.length), identity };
      return { taken, batch };
    };
    return looks.take(look, signal, size.patient);
  }

  /** See Collection.describe. */
  describe(): Promise<Description> {
    return this.#options.looks.soon(() => {
      const { identity, indexes } = this.#setLooks.current();
      return { identity, indexes: this.#listOf(indexes), now: null };
    });
  }

  /** The same array as long as it is not too old and the indexes are the same. */
  #listOf(records: SetRecord['indexes']): readonly Index[] {
    const now = this.#options.now();
    const isRecent = this.#listed !== null && now - this.#listed.at <= LISTED_MS;
    if (this.#listed?.records === records && isRecent) return this.#listed.indexes;
    const indexes = [KEY_INDEX, ...records.map(indexOf)];
    const text = JSON.stringify(indexes);
    this.#listed =
      this.#listed?.text === text && isRecent
        ? { ...this.#listed, records }
        : { records, text, at: now, indexes };
    return this.#listed.indexes;
  }

  /**
   * In a look: counts the rows of a walk over the whole set. Throws DamagedRowError when it ends with another number of
   * rows than were written, and nothing was written meanwhile: a page of the file is damaged.
   */
  #counted(set: SetRecord, plan: Plan, from: From, batch: Batch): Batch {
    const { log } = this.#options;
    if (!log || from.skip || plan.equals?.length || plan.range || plan.ids) return batch; // a part of the set
    const { last, rows } = log.state(set);
    const state = `${set.number} ${last}`;
    const before = from.after ? this.#walked.get(from.after) : { rows: 0, state };
    if (before?.state !== state) return batch;
    const walked = before.rows + batch.rows;
    if (batch.last) this.#walked.set(batch.last, { rows: walked, state });
    if (batch.more || walked === rows) return batch;
    batch.release();
    throw new DamagedRowError(`a walk over ${set.label} ended after ${walked} rows of ${rows}`);
  }

  /** In a look: the row of an id, if it also has the other values of the plan and comes after the bookmark. */
  single(set: SetRecord, plan: Plan, from: From): Batch {
    const { reader } = this.#options;
    const key = keyOfNamed(plan.equals?.find(({ path }) => path === KEY)?.value);
    const batch = reader.one(set.number, key);
    const row = batch && documentOf(batch).slice();
    if (row && !from.skip && isWanted(row, plan, from.after))
      return { ...batch, last: bookmarkOf(row, plan) };
    batch?.release();
    return reader.batch(null, 0, ONE, plan, set.hasLargeRows === true);
  }
}

function isWanted(row: Uint8Array, plan: Plan, after: From['after']): boolean {
  const bounds = boundsBehind(plan, after);
  if (!bounds || !hasValues(row, wantedOf(plan.equals))) return false;
  if (plan.range && typeof keyAt(row, plan.sort) === 'string') return false;
  const own = joinKeys(prefixOf(plan.equals), ...keysOfBookmark(bookmarkOf(row, plan), keyPaths(plan)));
  return compareKeys(own, bounds.low) > 0 && compareKeys(own, bounds.high) < 0;
}
