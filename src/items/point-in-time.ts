import { snapshotUnsupported } from '../errors.ts';
import { documented, oneOf, unsigned64 } from '../http/parameter.ts';
import type { Query } from '../http/query.ts';
import type { ItemStore, PointInTime } from '../store/store.ts';

/** What says of which time the rows are to be: `consistency=snapshot` of the present, `at` of a time that was given out. */
export const consistencyParameter = documented(
  oneOf('consistency', ['snapshot']),
  '`snapshot`: all rows as they are at one point in time, which the header Snapshot-At names. MongoDB replica sets only.',
);
export const atParameter = documented(
  unsigned64('at'),
  'All rows as they were at a point in time that Snapshot-At has named.',
);

/** The header that names the point in time of an answer. */
export const AT_HEADER = 'snapshot-at';

/** `present`: the time of the first look; undefined: no common time. */
export type AskedTime = PointInTime | 'present' | undefined;

export function readTime(query: Query): AskedTime {
  const consistency = consistencyParameter.read(query);
  return atParameter.read(query) ?? (consistency && 'present');
}

/** The point in time asked for; whether the store still has it, or has it yet, a read tells. AppError `snapshot-unsupported`. */
export async function timeOf(
  asked: AskedTime,
  items: Pick<ItemStore, 'pointInTime'>,
  signal: AbortSignal,
): Promise<PointInTime | undefined> {
  if (asked === undefined) return undefined;
  const present = await items.pointInTime(signal);
  if (present === null) throw snapshotUnsupported();
  return asked === 'present' ? present : asked;
}
