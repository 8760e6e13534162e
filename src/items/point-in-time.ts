import { snapshotUnsupported } from '../errors.ts';
import { oneOf, unsigned64 } from '../http/parameter.ts';
import type { Query } from '../http/query.ts';
import type { ItemStore, PointInTime } from '../store/store.ts';

/** What says of which time the rows are to be: `consistency=snapshot` of the present, `at` of a time that was given out. */
export const consistencyParameter = oneOf('consistency', ['snapshot']);
export const atParameter = unsigned64('at');

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
