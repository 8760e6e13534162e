import { collectionReplaced, noSuchPlace, snapshotUnsupported, storeUnfit } from '../../errors.ts';
import type { Batch, ReadBatch } from '../batch.ts';
import { bookmarkOf, KEY, keyPaths, type Bookmark, type Identity } from '../bookmark.ts';
import type { LookedUp } from '../change-feed.ts';
import { hasValues, keyAt, wantedOf } from '../has-values.ts';
import { keyOfValue } from '../order.ts';
import { KEY_INDEX, type Index } from '../indexes.ts';
import { compareKeys, joinKeys } from '../keys.ts';
import type { Description, From, Plan, Size } from '../store.ts';
import { DamagedRowError, documentIn } from './checked-rows.ts';
import type { Core } from './core.ts';
import { keyOfRow } from './keyed.ts';
import { boundsBehind, indexFor, isByKey, keysOfBookmark, prefixOf, rangeOf, readByOf } from './range.ts';
import type { Range } from './range.ts';
import type { SetIndexes } from './set-indexes.ts';
import { indexOf, type SetRecord, type SetShape } from './sets.ts';

/** How long a list of indexes, and what is known with it, stands for the collection. Milliseconds. */
const LISTED_MS = 1_000;
/** Entries of an index that one look passes over: about 2 ms. */
const PASSED_AT_ONCE = 40_000;
/** Rows looked up in one look: about 4 ms. */
const LOOKED_UP_AT_ONCE = 512;

const BY_ID = { sort: KEY };

/** The tables of a set, or the order of its rows, are others than when its read began. */
class SetReplaced extends Error {}

/** Looks at a set when its turn comes. See Looks. */
type SetLook = <T>(look: (set: SetRecord) => T, signal: AbortSignal, isPatient?: boolean) => Promise<T>;

/** How far a walk over all rows of a set has come: the number of rows, and the end of the log at that time. */
interface Walked {
  readonly rows: number;
  readonly state: string;
}

export type SetReads = ReturnType<typeof setReads>;

export function setReads(core: Core, shape: SetShape, indexes: SetIndexes) {
  const { sets, looks, reader, log } = core;
  const { now } = core.options;
  const { name } = shape;
  /** By the bookmark that the walk goes on from. */
  const walks = new WeakMap<Bookmark, Walked>();
  let listed: {
    readonly records: SetRecord['indexes'];
    readonly at: number;
    readonly indexes: readonly Index[];
  } | null = null;

  return { present, within, read, begin, pass, lookUp, describe, single };

  /** In a look: the set as it is. */
  function current(): SetRecord {
    const set = sets.get(name);
    indexes.buildLater(set);
    return set;
  }

  /** In a look: the set as it is, which must be of the plan's identity, and its index for the plan usable. */
  function present(plan: Plan): SetRecord {
    core.background.assertFit();
    const set = current();
    if (plan.identity !== undefined && plan.identity !== set.identity) throw collectionReplaced();
    if (isByKey(plan) || isSingle(plan)) return set;
    const index = indexFor(set, plan);
    if (!index) throw storeUnfit(`The resource ${set.label} has no index ${readByOf(plan)}.`);
    const { refused } = indexOf(index);
    if (refused !== undefined)
      throw storeUnfit(`The index ${readByOf(plan)} of ${set.label} cannot be used: ${refused}.`);
    return set;
  }

  /** Runs looks that are all of one identity: when the rows are removed between them, `work` begins anew. */
  async function within<T>(plan: Plan, work: (look: SetLook) => Promise<T>): Promise<T> {
    for (;;) {
      let first: SetRecord | null = null;
      const inSet = <R>(look: (set: SetRecord) => R): R => {
        const set = present(plan);
        if (isOther(set, (first ??= set))) throw new SetReplaced();
        return look(set);
      };
      try {
        return await work((look, ...call) => looks.take(() => inSet(look), ...call));
      } catch (error) {
        if (!(error instanceof SetReplaced)) throw error;
      }
    }
  }

  async function read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<ReadBatch> {
    if (plan.at !== undefined) throw snapshotUnsupported();
    if (plan.since !== undefined) throw noSuchPlace(); // only MongoDB has such times
    if (from.after && from.skip)
      throw new TypeError('a read begins after a row or after a number of rows, not both');
    signal.throwIfAborted();
    return within(plan, async (look) => {
      const { skip = 0 } = from;
      const isFar = skip > PASSED_AT_ONCE && !isSingle(plan);
      const passed = isFar ? await pass(look, await begin(look, plan, from, signal), skip, signal) : null;
      const readIn = (set: SetRecord): ReadBatch => {
        if (isSingle(plan)) return proved(set, plan, single(set, plan, from));
        const range = passed ? passed.rest : rangeOf(set, plan, from.after);
        const batch = reader.batch(range, passed ? 0 : skip, size, plan);
        try {
          assertAhead(range, set, plan, batch);
          assertCounted(set, plan, from, batch);
        } catch (error) {
          batch.release();
          throw error;
        }
        return proved(set, plan, batch);
      };
      return look(readIn, signal, size.patient);
    });
  }

  function proved({ identity }: SetRecord, plan: Plan, batch: Batch): ReadBatch {
    return { ...batch, identity, confirm: () => confirm(plan, identity) };
  }

  /** Rejects unless the plan can read the set as it is now, and it is of this identity. */
  async function confirm(plan: Plan, identity: Identity): Promise<void> {
    await looks.soon(() => present({ ...plan, identity }));
  }

  function begin(look: SetLook, plan: Plan, from: From, signal: AbortSignal): Promise<Range | null> {
    return look((set) => rangeOf(set, plan, from.after), signal);
  }

  /**
   * Passes over at most `most` rows of a range in bounded looks. Returns what is behind: null when there is no more.
   */
  async function pass(
    look: SetLook,
    range: Range | null,
    most: number,
    signal: AbortSignal,
    mayGoOn: () => boolean = () => true,
  ): Promise<{ readonly rows: number; readonly rest: Range | null }> {
    let [rest, rows] = [range, 0];
    while (rest && rows < most && (rows === 0 || mayGoOn())) {
      const [next, some]: [Range, number] = [rest, Math.min(most - rows, PASSED_AT_ONCE)];
      const passed = await look(() => reader.pass(next, some), signal);
      [rest, rows] = [passed.rest, rows + passed.rows];
    }
    return { rows, rest };
  }

  async function lookUp(
    keys: readonly Bookmark[],
    plan: Plan,
    size: Size,
    signal: AbortSignal,
  ): Promise<LookedUp> {
    if (plan.at !== undefined) throw snapshotUnsupported();
    const wanted = wantedOf(plan.equals);
    const look = (): LookedUp => {
      const set = present({ ...plan, sort: KEY, equals: [] });
      const rows: Uint8Array[] = [];
      let [taken, length] = [0, 0];
      for (const id of keys.slice(0, LOOKED_UP_AT_ONCE)) {
        if (rows.length >= size.rows || length >= size.bytes) break;
        taken++;
        const key = keyOfRow(id);
        const row = key && reader.row(set.number, key);
        if (!row) log.assertRemoved(set, id);
        if (!row || !hasValues(documentIn(row), wanted)) continue;
        rows.push(row);
        length += row.length;
      }
      // The rows of the other keys may be gone, so nothing is known of what follows.
      const batch =
        rows.length === 0
          ? null
          : { ...reader.batchOf(rows, taken < keys.length, BY_ID), identity: set.identity };
      return { taken, batch };
    };
    return looks.take(look, signal, size.patient);
  }

  function describe(): Promise<Description> {
    return looks.soon(() => {
      const set = current();
      return { identity: set.identity, indexes: listOf(set.indexes), now: null };
    });
  }

  /** The same array as long as it is not too old and the indexes are the same. */
  function listOf(records: SetRecord['indexes']): readonly Index[] {
    if (listed?.records !== records || now() - listed.at > LISTED_MS)
      listed = { records, at: now(), indexes: [KEY_INDEX, ...records.map(indexOf)] };
    return listed.indexes;
  }

  /**
   * In a look: counts the rows of a walk over the whole set. Throws DamagedRowError when it ends with another number of
   * rows than were written, and nothing was written meanwhile: a page of the file is damaged.
   */
  function assertCounted(set: SetRecord, plan: Plan, from: From, batch: Batch): void {
    if (!shape.hasChanges || from.skip || plan.equals?.length || plan.range || plan.ids) return;
    const { last, rows } = log.state(set);
    const state = `${set.number} ${last}`;
    const before = from.after ? walks.get(from.after) : { rows: 0, state };
    if (before?.state !== state) return;
    const walked = before.rows + batch.rows;
    if (batch.last) walks.set(batch.last, { rows: walked, state });
    if (batch.more || walked === rows) return;
    throw new DamagedRowError(`a walk over ${set.label} ended after ${walked} rows of ${rows}`);
  }

  /** In a look: the row of an id, if it also has the other values of the plan and comes after the bookmark. */
  function single(set: SetRecord, plan: Plan, from: From): Batch {
    const key = keyOfValue(plan.equals?.find(({ path }) => path === KEY)?.value);
    const row = reader.row(set.number, key);
    const isFound = row !== null && !from.skip && isWanted(documentIn(row), plan, from.after);
    return reader.batchOf(isFound ? [row] : [], false, plan);
  }
}

/** Throws DamagedRowError when a walk that goes on behind a batch would not come ahead: it might never end. */
function assertAhead(range: Range | null, set: SetRecord, plan: Plan, { last, more }: Batch): void {
  const rest = range && last && more ? rangeOf(set, plan, last) : null;
  if (!range || !rest) return;
  const isAhead = range.reverse
    ? compareKeys(rest.high, range.high) < 0
    : compareKeys(rest.low, range.low) > 0;
  if (!isAhead) throw new DamagedRowError(`rows of ${set.label} are not in their places`);
}

/** Whether batches of one are read in another way than those of the other. */
function isOther(one: SetRecord, other: SetRecord): boolean {
  return (
    one.number !== other.number ||
    one.identity !== other.identity ||
    one.isInOrder !== other.isInOrder ||
    one.hasLargeRows !== other.hasLargeRows
  );
}

export function isSingle({ index, equals = [] }: Pick<Plan, 'index' | 'equals'>): boolean {
  return index?.name === KEY_INDEX.name && equals.length > 0;
}

function isWanted(row: Uint8Array, plan: Plan, after: From['after']): boolean {
  const bounds = boundsBehind(plan, after);
  if (!bounds || !hasValues(row, wantedOf(plan.equals))) return false;
  if (plan.range && typeof keyAt(row, plan.sort) === 'string') return false;
  const own = joinKeys(prefixOf(plan.equals), ...keysOfBookmark(bookmarkOf(row, plan), keyPaths(plan)));
  return compareKeys(own, bounds.low) > 0 && compareKeys(own, bounds.high) < 0;
}
