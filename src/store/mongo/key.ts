import { AppError } from '../../errors.ts';
import { BSON, Double } from '../bson.ts';
import { KEY, keyOf } from '../bookmark.ts';
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
  throw new AppError(
    'invalid-cursor',
    `No MongoDB command can carry the ${orderOf(key)} of the row to continue after exactly. It is, or has in it, text that is not UTF-8, a date beyond the years of JavaScript, one name twice, or a value of a deprecated type (undefined, DBPointer). Choose the order of another field, or replace the value.`,
  );
}

function orderOf(key: RowKey): string {
  return Object.keys(key).find((path) => path !== KEY) ?? 'id';
}

/** The server treats the many bit patterns of NaN as one value. */
function isNaNValue(value: unknown): boolean {
  return value instanceof Double && Number.isNaN(value.value);
}
