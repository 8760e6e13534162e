import { noSuchPlace, snapshotUnsupported, storeUnfit } from '../../../errors.ts';
import type { Batch } from '../../batch.ts';
import { bookmarkOf, KEY, keyPaths, valueBookmarkOf, type Bookmark } from '../../bookmark.ts';
import { documentAt, endOfRow } from '../../bson-array.ts';
import type { Index } from '../../indexes.ts';
import type { Collection, Count, CountMode, Equality, From, Plan, Size } from '../../store.ts';
import { compareKeys, joinKeys, ABOVE_IDS, HIGHEST, LOWEST, type Key } from '../../keys.ts';
import type { Range } from '../range.ts';
import { COUNT_LIMIT_MS } from '../count-items.ts';
import type { LmdbReader } from '../read.ts';
import { keyAt, keyOfNamed, rowsPrefix } from './keyed.ts';
import { highestId, highOf, isByRows, justBelow, keysOfBookmark } from './range.ts';
import { lowestId, lowOf, prefixOf } from './range.ts';
import { BY_KEY, indexOf, nameOf, type ResourceRecord } from './record.ts';
import type { Loads } from '../load/loads.ts';
import type { ResourceWriter } from './write.ts';

/** How long a list of indexes, and what is known with it, stands for the collection. Milliseconds. */
const LISTED_MS = 1_000;
const ONE: Size = { rows: 1, bytes: 1 };
/** Ranks of values that no query can name: MinKey, undefined, regular expressions, DBPointers, MaxKey. */
const UNNAMEABLE: readonly number[] = [1, 2, 50, 55, 127];

export interface CollectionParts {
  /** The record as it is now. Throws when the store cannot be read. */
  readonly record: () => ResourceRecord;
  readonly rows: () => number;
  readonly reader: LmdbReader;
  readonly writer: ResourceWriter;
  readonly loads: Loads;
  readonly now: () => number;
}

/** A resource in the embedded store. */
export function lmdbCollection({ record, rows, reader, writer, loads, now }: CollectionParts): Collection {
  const read = async (plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> => {
    if (plan.at !== undefined) throw snapshotUnsupported();
    if (plan.since !== undefined) throw noSuchPlace(); // only MongoDB has such times
    if (isSingle(plan)) return readSingle(reader, record(), plan, from, signal);
    checkUsable(record(), plan);
    const batch = await reader.read(plan, from, size, signal);
    return isByRows(plan) ? batch : { ...batch, readBy: readByOf(plan) };
  };
  const count = async (plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> => {
    signal.throwIfAborted();
    if (isSingle(plan)) {
      const batch = await read(plan, {}, ONE, signal);
      batch.release();
      return { rows: batch.rows, is: 'exact' };
    }
    checkUsable(record(), plan);
    if (isByRows(plan) && !plan.range && !plan.ids) return { rows: rows(), is: 'exact' };
    const end = now() + COUNT_LIMIT_MS[mode];
    return reader.count(plan, () => now() >= end, signal);
  };
  /** The first row of an index between keys, as the value of a path. */
  const first = async (range: Range, path: string, signal: AbortSignal): Promise<Bookmark | null> => {
    const batch = await reader.readRange(range, ONE, signal);
    const row = documentOf(batch);
    return row && valueBookmarkOf(row, path);
  };
  const rangeIn = (index: Index, equals: readonly Equality[], low: Key | null, high: Key | null): Range => {
    const path = index.keys[equals.length]?.path ?? KEY;
    const prefix = prefixOf(record(), { equals, sort: path, index });
    const isRows = equals.length === 0 && path === KEY;
    return {
      table: isRows ? 'rows' : 'entries',
      prefix: prefix.length,
      values: index.keys.length - 1 - equals.length,
      start: low ?? joinKeys(prefix, LOWEST),
      end: high ?? joinKeys(prefix, ABOVE_IDS),
      reverse: false,
    };
  };
  let listed: { text: string; at: number; indexes: readonly Index[] } | null = null;
  return {
    read,
    count,
    get: (...call) => reader.get(...call),
    confirm: (_, plan) => Promise.resolve().then(() => checkUsable(record(), plan)),
    identity: () => Promise.resolve(undefined),
    pointInTime: () => Promise.resolve(null),
    insert: (...call) => writer.insert(...call),
    load: (...call) => loads.load(...call),
    split: async (plan, parts, signal) => {
      if (parts === 1 || isSingle(plan)) return [];
      const { rows: all } = await count(plan, 'exact', signal);
      return reader.split(plan, parts, all, signal);
    },
    indexes: () =>
      Promise.resolve().then(() => {
        const indexes = [BY_KEY, ...record().indexes.map(indexOf)];
        const text = JSON.stringify(indexes);
        if (listed?.text !== text || now() - listed.at > LISTED_MS) listed = { text, at: now(), indexes };
        return listed.indexes;
      }),
    holds: async (index, equals, bracket, signal) => {
      const plan: Plan = { index, equals, sort: KEY, direction: 1 };
      if (isSingle(plan)) return (await count(plan, 'exact', signal)).rows > 0;
      const { path } = index.keys[equals.length] ?? { path: KEY };
      const prefix = prefixOf(record(), { equals, sort: path, index });
      const [low, high] = path === KEY ? [lowestId, highestId] : [lowOf, highOf];
      const range =
        bracket === undefined
          ? rangeIn(index, equals, null, null)
          : rangeIn(index, equals, low(prefix, { bracket }), high(prefix, { bracket }));
      return (await first(range, KEY, signal)) !== null;
    },
    nextValue: async (index, equals, after, signal) => {
      const path = index.keys[equals.length]?.path ?? KEY;
      const prefix = prefixOf(record(), { equals, sort: path, index });
      const behind = (value: Key): Key => joinKeys(prefix, value, path === KEY ? LOWEST : ABOVE_IDS);
      let low = after ? behind(joinKeys(...keysOfBookmark(after, [path]))) : null;
      for (;;) {
        const found = await first(rangeIn(index, equals, low, null), path, signal);
        if (!found) return null;
        const key = joinKeys(...keysOfBookmark(found, [path]));
        if (!UNNAMEABLE.includes(key[0] ?? 0)) return found;
        low = joinKeys(prefix, Uint8Array.of(key[0] ?? 0), HIGHEST);
      }
    },
  };
}

/** The same, with errors of lmdb translated. */
export function toldCollection(rows: Collection, told: <T>(work: Promise<T>) => Promise<T>): Collection {
  return {
    ...rows,
    read: (...call) => told(rows.read(...call)),
    get: (...call) => told(rows.get(...call)),
    confirm: (...call) => told(rows.confirm(...call)),
    count: (...call) => told(rows.count(...call)),
    split: (...call) => told(rows.split(...call)),
    indexes: (...call) => told(rows.indexes(...call)),
    holds: (...call) => told(rows.holds(...call)),
    nextValue: (...call) => told(rows.nextValue(...call)),
  };
}

/** Whether a plan names one row by its key. */
function isSingle({ index, equals = [] }: Plan): boolean {
  return index?.name === BY_KEY.name && equals.length > 0;
}

/** The row of an id, if it also has the other values of the plan and comes after the bookmark. */
async function readSingle(
  reader: LmdbReader,
  record: ResourceRecord,
  plan: Plan,
  from: From,
  signal: AbortSignal,
): Promise<Batch> {
  const { equals = [], direction } = plan;
  const key = joinKeys(rowsPrefix(record), keyOfNamed(equals.find(({ path }) => path === KEY)?.value));
  const range: Range = {
    ...{ table: 'rows', prefix: 4, reverse: false },
    ...{ start: justBelow(key), end: joinKeys(key, LOWEST) },
  };
  const batch = await reader.readRange(range, ONE, signal);
  const row = batch.rows > 0 ? bytesOf(batch) : null;
  const has = (path: string, wanted: Key): boolean => {
    const found = row && keyAt(row, path);
    return found instanceof Uint8Array && compareKeys(found, wanted) === 0;
  };
  let isWanted =
    row !== null && !from.skip && equals.every(({ path, value }) => has(path, keyOfNamed(value)));
  if (row && isWanted && plan.range) {
    const none = new Uint8Array(0);
    const found = keyAt(row, plan.sort);
    const value = found instanceof Uint8Array ? joinKeys(found, Uint8Array.of(1)) : none;
    isWanted =
      compareKeys(value, lowOf(none, plan.range)) > 0 && compareKeys(value, highOf(none, plan.range)) < 0;
  }
  if (row && isWanted && from.after) {
    const own = joinKeys(...keysOfBookmark(bookmarkOf(row, plan), keyPaths(plan)));
    isWanted = compareKeys(own, joinKeys(...keysOfBookmark(from.after, keyPaths(plan)))) * direction > 0;
  }
  const last = row && isWanted ? bookmarkOf(row, plan) : null;
  return { ...batch, ...(!isWanted && { rows: 0, length: 0 }), last, more: false };
}

/** Rejects a read by an index that is unusable. */
export function checkUsable(record: ResourceRecord, plan: Plan): void {
  if (isByRows(plan) || isSingle(plan)) return;
  const name = readByOf(plan);
  const index = record.indexes.find(({ paths }) => nameOf(paths) === name);
  if (!index) throw storeUnfit(`The resource ${record.name} has no index ${name}.`);
  const { refused } = indexOf(index);
  if (refused !== undefined)
    throw storeUnfit(`The index ${name} of ${record.name} cannot be used: ${refused}.`);
}

/** The name of the index that a plan reads. */
function readByOf({ index, equals = [], sort }: Plan): string {
  const paths = [...equals.map(({ path }) => path), ...(sort === KEY ? [] : [sort])];
  return index?.name ?? nameOf(paths);
}

function documentOf(batch: Batch): Uint8Array | null {
  const row = batch.rows > 0 ? bytesOf(batch) : null;
  batch.release();
  return row;
}

/** A copy of the first row of a batch. */
function bytesOf({ slot, start, length }: Batch): Uint8Array {
  const bytes = slot.bytes(start + length).subarray(start);
  return bytes.slice(documentAt(bytes, 0), endOfRow(bytes, 0));
}
