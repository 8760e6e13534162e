import { elementsNamed, type BsonElement } from './bson-elements.ts';
import { BSON_TYPE, int32At } from './bson-types.ts';
import { reasonOf } from '../../base/error-reason.ts';
import { getOrMake } from '../../base/get-or-make.ts';
import { RecentMap } from '../../base/recent-map.ts';
import type { Value } from './keys.ts';

/** The first value of each top-level field, undefined when missing. A text when the bytes are not a BSON document. */
export function fieldsOf(document: Uint8Array, names: readonly string[]): (Value | undefined)[] | string {
  const elements = elementsIn(document, names.map(utf8Of));
  if (typeof elements === 'string') return elements;
  return elements.map((element) => valueOf(document, element));
}

/** The value of an element of a document. */
export function valueOf(document: Uint8Array, element: BsonElement | undefined): Value | undefined {
  return element && { type: element.type, bytes: document.subarray(element.valueAt, element.end) };
}

/** The first element of each name, which is in UTF-8. A text when the bytes are not one BSON document. */
export function elementsIn(
  document: Uint8Array,
  names: readonly Uint8Array[],
): (BsonElement | undefined)[] | string {
  let elements: (BsonElement | undefined)[];
  try {
    elements = elementsNamed(document, names);
  } catch (error) {
    return `the bytes are not a BSON document: ${reasonOf(error)}`;
  }
  // Bytes after the document would go unnoticed here, and would break a batch that contains them.
  const size = int32At(document, 0);
  return size === document.length ? elements : `the BSON document says ${size} bytes, got ${document.length}`;
}

/**
 * The value of a row at a path; null when there is none. The first field of each name counts, as in an index. Only documents
 * lead further down: an array on the way is returned itself, so that its caller notices. Throws a BSONError for bytes that
 * do not begin with a BSON document.
 */
export function valueAt(row: Uint8Array, path: string): Value | null {
  let value: Value = { type: BSON_TYPE.document, bytes: row };
  for (const name of getOrMake(PATHS, path, () => path.split('.').map((one) => [utf8Of(one)]))) {
    if (value.type === BSON_TYPE.array) return value;
    const [found] = value.type === BSON_TYPE.document ? elementsNamed(value.bytes, name) : [];
    if (!found) return null;
    value = { type: found.type, bytes: value.bytes.subarray(found.valueAt, found.end) };
  }
  return value;
}

/** The names on each path that is asked for, each as a list of one. Any client may name paths, so few are kept. */
const PATHS = new RecentMap<readonly (readonly Uint8Array[])[]>(1_000);

/** The names that are asked for, in UTF-8. */
const NAMES = new RecentMap<Uint8Array>(1_000);

function utf8Of(name: string): Uint8Array {
  return getOrMake(NAMES, name, () => Buffer.from(name));
}
