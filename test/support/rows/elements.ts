import { onDemand } from '../../../src/store/values/bson.ts';
import { BSON_TYPE } from '../../../src/store/values/bson-types.ts';

/** MongoDB stores 180 levels and refuses 181 (measured on 6.0.5), so every row that a server can hold is written. */
const DEEPEST = 180;

/** Where an element of a document has its name and its value, in bytes. */
export type Element = readonly [type: number, nameAt: number, nameLength: number, at: number, length: number];

/**
 * The elements of the document or array at `at`, `depth` levels deep in its row. Throws when one of them is not sound or
 * the document is nested too deep. Documents among the values are not examined further.
 */
export function elementsAt(bytes: Buffer, at: number, depth: number): Element[] {
  if (depth > DEEPEST) throw new Error(`The document is nested more than ${DEEPEST} levels deep`);
  const elements = [...onDemand.parseToElements(bytes, at)];
  for (const element of elements) check(bytes, element);
  return elements;
}

/** Whether the value has members: fields, or elements of an array. */
export function isNested([type]: Element): boolean {
  return type === BSON_TYPE.document || type === BSON_TYPE.array;
}

/**
 * Checks what parseToElements does not: it ensures that each value ends inside its document, but not that the value is
 * sound.
 */
function check(bytes: Buffer, [type, , , at, length]: Element): void {
  switch (type) {
    case BSON_TYPE.string:
    case BSON_TYPE.code:
    case BSON_TYPE.symbol:
    case BSON_TYPE.dbPointer: {
      const end = at + length - (type === BSON_TYPE.dbPointer ? 12 : 0);
      if (end - at < 5 || bytes[end - 1] !== 0) throw new Error('A string does not end where it says');
      return;
    }
    case BSON_TYPE.document:
    case BSON_TYPE.array:
      if (length < 5 || bytes[at + length - 1] !== 0)
        throw new Error('A document does not end where it says');
      return;
    case BSON_TYPE.scopedCode:
      // Its own length, and the smallest string and the smallest document inside it.
      if (length < 14) throw new Error('A code with a scope is shorter than any can be');
      return;
    case BSON_TYPE.binary:
      // The old subtype 2 repeats the length inside the value.
      if (bytes[at + 4] === 2 && (length < 9 || bytes.readInt32LE(at + 5) !== length - 9)) {
        throw new Error('A binary value has another length inside');
      }
  }
}
