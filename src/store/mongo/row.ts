import type { Document } from 'mongodb';
import { BSON, Decimal128, Double, Int32, Long } from '../bson.ts';
import { reasonOf } from '../../thrown.ts';

/**
 * A row (a BSON document) in the form that the driver accepts. Returns a text instead, with what was expected and what
 * was found, when the row cannot be an item or would not be written unchanged.
 */
export function readRow(row: Uint8Array, largest: number): Document | string {
  if (row.length > largest) return `a row has at most ${largest} bytes, got ${row.length}`;
  let document: Document;
  try {
    document = BSON.deserialize(row, { promoteValues: false, promoteBuffers: false, bsonRegExp: true });
  } catch (error) {
    return `the bytes are no BSON document: ${reasonOf(error)}`;
  }
  // The driver writes JavaScript objects. A row that does not survive the conversion there and back would be changed
  // silently.
  if (Buffer.compare(BSON.serialize(document, { ignoreUndefined: false }), row) !== 0)
    return 'it holds a value that cannot be written unchanged (a deprecated type, a double name, a date out of range)';
  return faultOf(document) ?? document;
}

/** The checks of the collection's validator, also for collections without one. */
function faultOf({ _id, category, price }: Document): string | null {
  if (_id === undefined) return '_id is missing';
  if (typeof category !== 'string') return 'category is no string';
  const isNumber = [Int32, Long, Double, Decimal128].some((type) => price instanceof type);
  if (!isNumber) return 'price is no number';
  return Number.isNaN(Number(String(price))) || String(price).includes('Infinity')
    ? `price is ${String(price)}, expected a finite number`
    : null;
}
