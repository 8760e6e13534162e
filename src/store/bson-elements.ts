import { onDemand } from './bson.ts';
import { sizeAt, sizeOfValue } from './bson-size.ts';

/** An element in its document: its type, and the byte offsets of the type, of the value and of the end. */
export interface BsonElement {
  readonly type: number;
  readonly at: number;
  readonly valueAt: number;
  readonly end: number;
}

/**
 * The first element of each name, undefined when there is none. Names are in UTF-8. It runs for every row that is
 * written, so it does not list all elements as bson's parser does. Throws a BSONError when the bytes do not begin with a
 * BSON document.
 */
export function elementsNamed(
  document: Uint8Array,
  names: readonly Uint8Array[],
): (BsonElement | undefined)[] {
  return scan(document, names) ?? parsed(document, names);
}

/** Null for a document that is damaged, or has a value of a rare type. */
function scan(document: Uint8Array, names: readonly Uint8Array[]): (BsonElement | undefined)[] | null {
  const end = document.length - 1;
  if (end < 4 || document[end] !== 0 || sizeAt(document, 0) !== document.length) return null;
  const found = new Array<BsonElement | undefined>(names.length).fill(undefined);
  let next = 4;
  while (next < end) {
    const at = next;
    const type = document[at] ?? 0;
    let valueAt = at + 1;
    while (valueAt < end && document[valueAt] !== 0) valueAt++;
    valueAt++;
    const size = sizeOfValue(document, type, valueAt);
    next = valueAt + size;
    if (size < 0 || next > end) return null;
    const index = indexOfName(document, at + 1, valueAt - at - 2, names);
    if (index >= 0) found[index] ??= { type, at, valueAt, end: next };
  }
  return next === end ? found : null;
}

/** The same for any document. */
function parsed(document: Uint8Array, names: readonly Uint8Array[]): (BsonElement | undefined)[] {
  const found = names.map((): BsonElement | undefined => undefined);
  for (const [type, nameAt, nameLength, valueAt, length] of onDemand.parseToElements(document)) {
    const index = indexOfName(document, nameAt, nameLength, names);
    if (index >= 0) found[index] ??= { type, at: nameAt - 1, valueAt, end: valueAt + length };
  }
  return found;
}

/** The index of the name that stands in these bytes. -1 when it is none of `names`. */
export function indexOfName(
  bytes: Uint8Array,
  at: number,
  length: number,
  names: readonly Uint8Array[],
): number {
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    if (name?.length !== length) continue;
    let n = 0;
    while (n < length && name[n] === bytes[at + n]) n++;
    if (n === length) return index;
  }
  return -1;
}
