import { getOrMake } from '../../base/get-or-make.ts';
import { onDemand } from './bson.ts';
import { int32At, sizeOfValue } from './bson-types.ts';

/** An element in its document: its type, and the byte offsets of the value and of the end. */
export interface BsonElement {
  readonly type: number;
  readonly valueAt: number;
  readonly end: number;
}

/** The names of elements that are written, with their NUL. They are few: paths of indexes, and those of statements. */
const WRITTEN = new Map<string, Uint8Array>();

/** The bytes of an element. It runs several times for a row that is read by its key. */
export function elementOf(type: number, name: string, value: Uint8Array): Uint8Array {
  const written = getOrMake(WRITTEN, name, () => Buffer.from(`${name}\0`));
  const bytes = new Uint8Array(1 + written.length + value.length);
  bytes[0] = type;
  bytes.set(written, 1);
  bytes.set(value, 1 + written.length);
  return bytes;
}

/** A document of these elements. */
export function documentWith(...elements: readonly Uint8Array[]): Uint8Array {
  const size = elements.reduce((sum, { length }) => sum + length, 5);
  const bytes = new Uint8Array(size);
  new DataView(bytes.buffer).setInt32(0, size, true);
  let at = 4;
  for (const element of elements) {
    bytes.set(element, at);
    at += element.length;
  }
  return bytes;
}

/** The first element of each name (in UTF-8), or undefined. Runs for every row. Throws a BSONError for other bytes. */
export function elementsNamed(document: Uint8Array, names: readonly Uint8Array[]) {
  const found = names.map((): BsonElement | undefined => undefined);
  const end = document.length - 1;
  const isFramed = int32At(document, 0) === document.length && document[end] === 0;
  let at = 4;
  while (isFramed && at < end) {
    const type = document[at] ?? 0;
    const name = at + 1;
    let nul = name;
    while (nul < end && document[nul] !== 0) nul++;
    const size = sizeOfValue(document, type, nul + 1);
    if (size < 0 || nul + 1 + size > end) break;
    at = nul + 1 + size;
    const index = indexOfName(document, name, nul - name, names);
    if (index >= 0) found[index] ??= { type, valueAt: nul + 1, end: at };
  }
  return isFramed && at === end ? found : parsed(document, names);
}

/** The same for a document that is damaged, or has a value of a rare type. */
function parsed(document: Uint8Array, names: readonly Uint8Array[]): (BsonElement | undefined)[] {
  const found = names.map((): BsonElement | undefined => undefined);
  for (const [type, nameAt, nameLength, valueAt, length] of onDemand.parseToElements(document)) {
    const index = indexOfName(document, nameAt, nameLength, names);
    if (index >= 0) found[index] ??= { type, valueAt, end: valueAt + length };
  }
  return found;
}

/** The index of the name that stands in these bytes. -1 when it is none of `names`. */
function indexOfName(bytes: Uint8Array, at: number, length: number, names: readonly Uint8Array[]): number {
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    if (name?.length !== length) continue;
    let n = 0;
    while (n < length && name[n] === bytes[at + n]) n++;
    if (n === length) return index;
  }
  return -1;
}
