import { snapshotUnsupported } from '../../base/errors.ts';
import { conflict, documented, oneOf, unsigned64 } from '../../input/parameter.ts';
import type { Query } from '../../input/query.ts';
import type { Collection, PointInTime } from '../../store/store.ts';

/** The time of the rows: `consistency=snapshot` is the present, `at` is a time that an earlier answer named. */
export const consistencyParameter = documented(
  oneOf('consistency', ['live', 'snapshot']),
  '`snapshot`: return all rows as they are at one point in time, which the Snapshot-At header states. Requires a MongoDB replica set.',
  { fallback: 'live' },
);
export const atParameter = documented(
  unsigned64('at'),
  'Return all rows as they were at this point in time: the value of an earlier Snapshot-At header.',
);

/** The header that names the point in time of an answer. */
export const AT_HEADER = 'snapshot-at';

/** `present`: the store's point in time. `live`: no common time. undefined: the time of the cursor, or none. */
export type TimeChoice = PointInTime | 'present' | 'live' | undefined;

/** Reads the time asked for. AppError `conflicting-parameters` for `at` with `consistency=live`. */
export function readTime(query: Query): TimeChoice {
  const consistency = consistencyParameter.read(query);
  const at = atParameter.read(query);
  if (at !== undefined && consistency === 'live')
    throw conflict('consistency', 'at requests a snapshot, so it excludes consistency=live.');
  return at ?? (consistency === 'snapshot' ? 'present' : consistency);
}

/** The time of the rows. Only a read shows whether the store has it. AppError `snapshot-unsupported`: it has none. */
export async function timeOf(
  asked: TimeChoice,
  rows: Pick<Collection, 'describe'>,
  signal: AbortSignal,
): Promise<PointInTime | undefined> {
  if (asked === undefined || asked === 'live') return undefined;
  const { now: present = null } = await rows.describe(signal, { now: true });
  if (present === null) throw snapshotUnsupported();
  return asked === 'present' ? present : asked;
}
