import { rowBehind } from '../token/cursor.ts';
import { checkMark, cursorMismatch } from '../token/token.ts';
import type { From, Plan } from '../../store/store.ts';
import { readAfter } from './after.ts';
import type { RowSource } from '../row-source.ts';
import { timeOf } from './point-in-time.ts';
import type { StreamQuery } from './parameters.ts';

/**
 * Where a stream begins: after the row of a cursor, after the row that `after` shows, or at its first row. Also at what
 * time, and in which collection if a cursor or part names one. AppError `collection-replaced` when that is not the
 * current collection, `cursor-mismatch` when the cursor does not fit the parameters.
 */
export async function beginningOf(
  { time, cursor, after, part }: Pick<StreamQuery, 'time' | 'cursor' | 'after' | 'part'>,
  asked: Plan,
  source: Pick<RowSource, 'collection' | 'rows' | 'readShown' | 'readId'>,
  signal: AbortSignal,
): Promise<{ plan: Plan; from: From }> {
  if (cursor !== undefined) {
    const known = typeof time === 'bigint' ? { ...asked, at: time } : asked;
    const bookmark = rowBehind(cursor, source.collection, known);
    const { at, since, mark } = cursor;
    if (time === 'present' && at === undefined)
      throw cursorMismatch(
        'The cursor does not come from a snapshot. Omit consistency=snapshot, or start without a cursor.',
      );
    if (time === 'live' && at !== undefined)
      throw cursorMismatch(
        'The cursor comes from a snapshot. Omit consistency=live, or start without a cursor.',
      );
    const plan = await marked(asked, [part?.mark, mark], source, signal);
    // A member that lags must not miss what changes do not repeat (Changes-From of the stream that was cut).
    const bound = since !== undefined && (asked.since === undefined || since > asked.since) ? { since } : {};
    return { plan: at === undefined ? { ...plan, ...bound } : { ...plan, at }, from: { after: bookmark } };
  }
  const plan = await marked(asked, [part?.mark], source, signal);
  const at = await timeOf(time, source.rows, signal);
  const timed = at === undefined ? plan : { ...plan, at };
  const from = after === undefined ? {} : { after: await readAfter(after, timed, source, signal) };
  return { plan: timed, from };
}

/**
 * The plan, bound to the collection of these marks. Without a mark, the first read decides on the collection. AppError
 * `collection-replaced` when a mark is of another collection.
 */
async function marked(
  plan: Plan,
  marks: readonly (number | undefined)[],
  { rows }: Pick<RowSource, 'rows'>,
  signal: AbortSignal,
): Promise<Plan> {
  if (marks.every((mark) => mark === undefined)) return plan;
  const { identity } = await rows.describe(signal);
  for (const mark of marks) checkMark(mark, identity);
  return identity === undefined ? plan : { ...plan, identity };
}
