import { documented } from '../../input/parameter.ts';
import { isKeyValue } from '../token/cursor.ts';
import { encodeToken, refusal, tokenParameter, type Token, type TokenHead } from '../token/token.ts';
import { keyOf, makeBookmark, type Bookmark } from '../../store/bookmark.ts';
import { comparePlaces } from '../../store/values/order.ts';
import { BSON } from '../../store/values/bson.ts';
import { exactValues } from '../../store/values/exact-values.ts';
import type { IdRange } from '../../store/store.ts';

/** Part: a range of ids as clients carry it. The body of its token is {from, to} as BSON, each the exact id, or absent where the range is open. */

/** A longer id cannot bound a part, because a part and a cursor that begins in it must fit one URL. Bytes. */
const LONGEST_BOUND = 640;

/** The limit holds two such ids and the rest of the token, in base64. */
export const partParameter = documented(
  tokenParameter('part', 'part', 2048),
  'Return only the rows of this part: a value from the partitions of the collection.',
);

/** Whether a part can begin or end at this id. */
export function isBoundOfPart(id: Bookmark): boolean {
  return id.length <= LONGEST_BOUND && isKeyValue(keyOf(id)._id);
}

/** The text of a part. The head may have the types of the plan's values, the earliest time of reads and the mark. */
export function encodePart({ from, to }: IdRange, head: TokenHead): string {
  const bounds = { ...(from && { from: keyOf(from)._id }), ...(to && { to: keyOf(to)._id }) };
  return encodeToken('part', head, BSON.serialize(bounds));
}

/** The range of a part. AppError `invalid-parameter` when its body is none. */
export function idsOf(part: Token): IdRange {
  const bounds = boundsOf(part);
  if (!Object.keys(bounds).every((name) => name === 'from' || name === 'to'))
    throw refusal(part, 'it has members other than its bounds');
  if (!Object.values(bounds).every(isKeyValue)) throw refusal(part, 'its bounds are not ids');
  const range: IdRange = {
    ...('from' in bounds && { from: makeBookmark({ _id: bounds.from }) }),
    ...('to' in bounds && { to: makeBookmark({ _id: bounds.to }) }),
  };
  if (range.from && range.to && comparePlaces(range.from, range.to) >= 0)
    throw refusal(part, 'it ends where it begins, or before');
  return range;
}

function boundsOf(part: Token): Record<string, unknown> {
  try {
    return exactValues(part.body);
  } catch (error) {
    if (BSON.BSONError.isBSONError(error)) throw refusal(part, 'its bounds are not BSON', undefined, error);
    throw error;
  }
}
