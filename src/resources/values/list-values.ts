import { AppError } from '../../base/errors.ts';
import { KEY, keyOf, type Bookmark } from '../../store/bookmark.ts';
import { documentWith, elementOf } from '../../store/values/bson-elements.ts';
import { firstAbort } from '../../store/turns/deadline.ts';
import type { Index } from '../../store/indexes.ts';
import type { Collection, Equality, Plan } from '../../store/store.ts';
import { chooseIndex, isRefusal } from '../query/planner.ts';

/** The time for all reads of one answer. Milliseconds. */
const TIME_MS = 1000;

export interface LimitedTime {
  readonly isUp: () => boolean;
  /** Aborts a read when the time is up. */
  readonly end: AbortSignal;
}

/** One second. The clock counts while reads keep the event loop busy, and the signal ends one that hangs. */
export function limitedTime(): LimitedTime {
  const until = performance.now() + TIME_MS;
  const end = AbortSignal.timeout(TIME_MS);
  return { isUp: () => end.aborted || performance.now() >= until, end };
}

/** A question for distinct values: those of `plan.sort`. */
export interface ValuesRequest {
  readonly plan: Plan & { readonly index: Index; readonly equals: readonly Equality[] };
  /** The paths that have one value: those of the plan, and those of a part. */
  readonly paths: readonly string[];
  /** All indexes that clients may know of. */
  readonly indexes: readonly Index[];
}

/** The cursor behind a value. Undefined when it would be longer than the server accepts. */
export type CursorOf = (value: Bookmark) => string | undefined;

interface ListOptions {
  /** The value to continue after. */
  readonly after: Bookmark | null;
  readonly most: number;
  readonly cursorOf: CursorOf;
}

interface ValuesPage {
  readonly values: readonly Bookmark[];
  readonly hasMore: boolean;
  /** The stretches of values that were passed over before the last one, or before the end. Each has one value or more. */
  readonly omitted: number;
}

/**
 * The distinct values of a plan's sort. The first is waited for as long as the store takes, so that every answer goes
 * on; others come in time. If more follow, the last has a cursor: else AppError `sort-value-too-long`.
 */
export async function listValues(
  rows: Pick<Collection, 'nextValue'>,
  { index, equals }: ValuesRequest['plan'],
  { after, most, cursorOf }: ListOptions,
  time: LimitedTime,
  signal: AbortSignal,
): Promise<ValuesPage> {
  const found: ValueEntry[] = [];
  const limited = firstAbort([time.end], signal);
  let omitted = 0;
  for (;;) {
    const isFirst = found.length === 0;
    if (!isFirst && time.isUp()) return fitting(found, cursorOf);
    const from = {
      after: found.at(-1)?.value ?? after,
      onOmitted: () => {
        omitted++;
      },
    };
    const reading = rows.nextValue(index, equals, from, isFirst ? signal : limited);
    const value = await (isFirst ? reading : inTime(reading, time, signal));
    if (value === LATE) return fitting(found, cursorOf);
    if (!value) return { values: valuesOf(found), hasMore: false, omitted };
    if (found.length === most) return fitting(found, cursorOf);
    found.push({ value, omitted });
  }
}

/** A value, and what was passed over up to it. */
interface ValueEntry {
  readonly value: Bookmark;
  readonly omitted: number;
}

function valuesOf(found: readonly ValueEntry[]): readonly Bookmark[] {
  return found.map(({ value }) => value);
}

const LATE = Symbol('the time is up');

/** What a read resolves with, or LATE when it was given up because the time is up. */
async function inTime<T>(
  reading: Promise<T>,
  time: LimitedTime,
  signal: AbortSignal,
): Promise<T | typeof LATE> {
  try {
    return await reading;
  } catch (error) {
    if (time.end.aborted && !signal.aborted) return LATE;
    throw error;
  }
}

/** Values that others follow. */
function fitting(found: readonly ValueEntry[], cursorOf: CursorOf): ValuesPage {
  const end = found.findLastIndex(({ value }) => cursorOf(value) !== undefined);
  const last = found[end];
  if (last) return { values: valuesOf(found.slice(0, end + 1)), hasMore: true, omitted: last.omitted };
  throw new AppError(
    'sort-value-too-long',
    'No cursor can continue after these values: they are too long. A larger limit may help.',
  );
}

/** The number of rows of each value, null where the time is up or no index counts them. */
export async function countValues(
  values: readonly Bookmark[],
  { plan, paths: fixed, indexes }: ValuesRequest,
  rows: Pick<Collection, 'count'>,
  time: LimitedTime,
  signal: AbortSignal,
): Promise<readonly (number | null)[]> {
  const paths = [...fixed, plan.sort];
  const behind = plan.index.keys[paths.length];
  const byId = chooseIndex({ equals: paths, ranges: [] }, indexes);
  const choice =
    isRefusal(byId) && behind
      ? chooseIndex({ equals: paths, ranges: [], sort: { path: behind.path, direction: 1 } }, indexes)
      : byId;
  const limited = firstAbort([time.end], signal);
  const counts: (number | null)[] = [];
  for (const value of values) {
    if (isRefusal(choice) || time.isUp()) {
      counts.push(null);
      continue;
    }
    const all: Equality[] = [...plan.equals, { path: plan.sort, value: keyOf(withKey(value))[plan.sort] }];
    const equals = choice.equals.flatMap((path) => all.filter((one) => one.path === path));
    const { index, sort, direction } = choice;
    const counting = rows.count({ index, sort, direction, equals }, 'exact', limited);
    const count = await inTime(counting, time, signal);
    counts.push(count !== LATE && count.is === 'exact' ? count.rows : null);
  }
  return counts;
}

/** Bookmarks `{PATH: value}` of distinct values become others byte by byte, so a value keeps its type and precision. */
const NULL_KEY = Buffer.from('\u000a_id\u0000', 'latin1');

/** `{PATH: value, _id: null}`: the form in which a cursor carries it. */
export function withKey(value: Bookmark): Bookmark {
  return documentWith(value.subarray(4, -1), NULL_KEY) as Bookmark;
}

/** The bookmark that `withKey` was given. Null when it was not made by `withKey`. */
export function valueOf(place: Bookmark): Bookmark | null {
  if (!NULL_KEY.equals(place.subarray(-1 - NULL_KEY.length, -1))) return null;
  return documentWith(place.subarray(4, -1 - NULL_KEY.length)) as Bookmark;
}

/** `{_id: value}`. */
export function asKey(value: Bookmark): Bookmark {
  const valueAt = value.indexOf(0, 5) + 1;
  return documentWith(elementOf(value[4] ?? 0, KEY, value.subarray(valueAt, -1))) as Bookmark;
}
