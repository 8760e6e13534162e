import { AppError, snapshotUnsupported } from '../errors.ts';
import { documented, oneOf, unsigned64 } from '../input/parameter.ts';
import type { Query } from '../input/query.ts';
import type { ItemStore, PointInTime } from '../store/store.ts';

/** What says of which time the rows are to be: `consistency=snapshot` of the present, `at` of a time that was given out. */
export const consistencyParameter = documented(
  oneOf('consistency', ['live', 'snapshot']),
  '`snapshot`: all rows as they are at one point in time, which the header Snapshot-At names. MongoDB replica sets only.',
  { fallback: 'live' },
);
export const atParameter = documented(
  unsigned64('at'),
  'All rows as they were at a point in time that Snapshot-At has named.',
);

/** The header that names the point in time of an answer. */
export const AT_HEADER = 'snapshot-at';

/** `present`: the time of the first look; `live`: no common time; undefined: that of the cursor, else none. */
export type AskedTime = PointInTime | 'present' | 'live' | undefined;

/** The time asked for. AppError `conflicting-parameters` for `at` with `consistency=live`. */
export function readTime(query: Query): AskedTime {
  const consistency = consistencyParameter.read(query);
  const at = atParameter.read(query);
  if (at !== undefined && consistency === 'live') {
    const detail = 'at names a point in time, and consistency=live says that there is none.';
    throw new AppError('conflicting-parameters', detail, { parameter: 'consistency' });
  }
  return at ?? (consistency === 'snapshot' ? 'present' : consistency);
}

/** The point in time asked for; whether the store still has it, or has it yet, a read tells. AppError `snapshot-unsupported`. */
export async function timeOf(
  asked: AskedTime,
  items: Pick<ItemStore, 'pointInTime'>,
  signal: AbortSignal,
): Promise<PointInTime | undefined> {
  if (asked === undefined || asked === 'live') return undefined;
  const present = await items.pointInTime(signal);
  if (present === null) throw snapshotUnsupported();
  return asked === 'present' ? present : asked;
}
