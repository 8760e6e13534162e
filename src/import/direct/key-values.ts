import { MAX_KEY_BYTES } from '../../items/query.ts';
import { BSON_TYPE } from '../../store/bson-types.ts';
import { ObjectId } from '../../store/bson.ts';
import { nameBytes, type DocumentWriter } from './document-writer.ts';

export const ID = nameBytes('_id');
export const CATEGORY = nameBytes('category');
export const PRICE = nameBytes('price');

/** Writes an id for a row that has none. */
export function writeNewId(writer: DocumentWriter): void {
  const { id } = new ObjectId();
  writer.element(BSON_TYPE.objectId, ID);
  writer.bytes.set(id, writer.at);
  writer.at += id.length;
}

/** Where the elements with rules of their own are in the document that is being written. -1: the row has none. */
export interface KeyPlaces {
  id: number;
  category: number;
  price: number;
}

/**
 * Whether the id, the category and the price of a row are common ones, which encodeItem or encodeRow accepts. All other
 * values are left to these functions.
 */
export function haveCommonKeys(writer: DocumentWriter, places: KeyPlaces, isItem: boolean): boolean {
  if (places.id >= 0 && !isCommonId(writer, places.id, isItem)) return false;
  return !isItem || (isCommonCategory(writer, places.category) && isCommonPrice(writer, places.price));
}

function isCommonId(writer: DocumentWriter, at: number, isItem: boolean): boolean {
  const valueAt = at + 1 + ID.length;
  switch (writer.bytes[at] ?? 0) {
    case BSON_TYPE.int32:
    case BSON_TYPE.objectId:
      return true;
    case BSON_TYPE.double:
      return !isItem || Number.isSafeInteger(writer.double(valueAt));
    case BSON_TYPE.string:
      return writer.textLength(valueAt) > 0 && writer.textLength(valueAt) <= MAX_KEY_BYTES;
    default:
      return false;
  }
}

function isCommonCategory(writer: DocumentWriter, at: number): boolean {
  if (at < 0 || writer.bytes[at] !== BSON_TYPE.string) return false;
  return writer.textLength(at + 1 + CATEGORY.length) <= MAX_KEY_BYTES;
}

/** Every number that is written without the bson library is finite. */
function isCommonPrice(writer: DocumentWriter, at: number): boolean {
  return at >= 0 && (writer.bytes[at] === BSON_TYPE.int32 || writer.bytes[at] === BSON_TYPE.double);
}
