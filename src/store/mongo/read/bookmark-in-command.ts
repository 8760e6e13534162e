import { AppError } from '../../../base/errors.ts';
import { BSON, Code, MaxKey } from '../../values/bson.ts';
import { KEY, keyOf, type Bookmark, type RowKey } from '../../bookmark.ts';
import { isNaNValue } from './type-brackets.ts';

/**
 * A bookmark's values as a command carries them. The driver builds commands from JavaScript values, and a few BSON
 * values do not survive that (a date beyond JavaScript's range, a deprecated type): the next read would begin
 * elsewhere. A key that does not come out unchanged is therefore refused with AppError `invalid-cursor`.
 */
export function commandKey(bookmark: Bookmark): RowKey {
  const key = keyOf(bookmark);
  if (Object.values(key).some((value) => isDeeper(value, DEEPEST)) || key._id instanceof MaxKey)
    throw new AppError(
      'invalid-cursor',
      'No row of this store can have the key of the row to continue after.',
    );
  const survives = Buffer.compare(BSON.serialize(key, { ignoreUndefined: false }), bookmark) === 0;
  // The server treats the many bit patterns of NaN as one value.
  if (survives || Object.values(key).some(isNaNValue)) return key;
  const lost = lostIn(key, bookmark);
  const advice = `${lost === KEY ? 'Replace' : 'Choose the order of another field, or replace'} the value.`;
  throw new AppError(
    'invalid-cursor',
    `No MongoDB command can carry the ${lost === KEY ? 'id' : lost} of the row to continue after exactly. It is, or has in it, text that is not UTF-8, a date beyond the years of JavaScript, one name twice, or a value of a deprecated type (undefined, DBPointer). ${advice}`,
  );
}

/** The path whose value changes on its way: that of the order, or that of the key, which a bookmark of a row ends with. */
function lostIn(key: RowKey, bookmark: Bookmark): string {
  const sort = Object.keys(key).find((path) => path !== KEY);
  if (sort === undefined || !Object.hasOwn(key, KEY)) return sort ?? KEY;
  const id = BSON.serialize({ _id: key._id }, { ignoreUndefined: false }).subarray(4);
  return Buffer.compare(bookmark.subarray(-id.length), id) === 0 ? sort : KEY;
}

/** MongoDB stores rows of 180 levels. A command, in which the key lies deeper, may have 200. */
const DEEPEST = 180;

/** Whether a value of exactValues has more levels of documents and arrays. */
function isDeeper(value: unknown, levels: number): boolean {
  if (value instanceof Code) return isDeeper(value.scope, levels);
  if (!(value instanceof Map) && !Array.isArray(value)) return false;
  return levels === 0 || [...value.values()].some((inner) => isDeeper(inner, levels - 1));
}
