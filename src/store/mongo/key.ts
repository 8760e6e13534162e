import { AppError } from '../../errors.ts';
import { BSON, Double } from '../bson.ts';
import { keyOf } from '../bookmark.ts';
import type { Bookmark, RowKey } from '../bookmark.ts';

/**
 * A bookmark's values as a command carries them. The driver builds commands from JavaScript values, and a few BSON
 * values do not survive that (a date beyond JavaScript's range, a deprecated type): the next read would begin
 * elsewhere. A key that does not come out unchanged is therefore refused with AppError `invalid-cursor`.
 */
export function commandKey(bookmark: Bookmark): RowKey {
  const key = keyOf(bookmark);
  const survives = Buffer.compare(BSON.serialize(key, { ignoreUndefined: false }), bookmark) === 0;
  if (survives || Object.values(key).some(isNaNValue)) return key;
  throw new AppError('invalid-cursor', 'The cursor has a value that no MongoDB command can carry exactly.');
}

/** The server treats the many bit patterns of NaN as one value. */
function isNaNValue(value: unknown): boolean {
  return value instanceof Double && Number.isNaN(value.value);
}
