import { AppError } from '../../errors.ts';
import { BSON, Double } from '../bson.ts';
import { keyOf } from '../bookmark.ts';
import type { Bookmark } from '../bookmark.ts';

/**
 * A bookmark's values as a command carries them. The driver builds commands from JavaScript values, and a few BSON values
 * do not survive that (a date beyond JavaScript's, a deprecated type): the next read would begin elsewhere. So
 * what does not come out as it went in is refused: AppError `invalid-cursor`.
 */
export function commandKey(bookmark: Bookmark): { _id: unknown; price?: unknown } {
  const key = keyOf(bookmark);
  const survives = Buffer.compare(BSON.serialize(key, { ignoreUndefined: false }), bookmark) === 0;
  if (survives || isNaNValue(key.price) || isNaNValue(key._id)) return key;
  throw new AppError('invalid-cursor', 'The cursor holds a value that no command can carry exactly.');
}

/** The many bit patterns of NaN are one value to the server. */
function isNaNValue(value: unknown): boolean {
  return value instanceof Double && Number.isNaN(value.value);
}
