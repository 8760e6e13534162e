import { elementsNamed, type BsonElement } from './bson-elements.ts';
import { sizeAt } from './bson-size.ts';
import { reasonOf } from '../error-reason.ts';
import type { Value } from './keys.ts';

/**
 * The values of the named top-level fields (the first of each name, undefined when it is missing). A text instead when
 * the bytes are not a BSON document.
 */
export function fieldsOf(document: Uint8Array, names: readonly string[]): (Value | undefined)[] | string {
  let elements: (BsonElement | undefined)[];
  try {
    elements = elementsNamed(document, names.map(utf8Of));
  } catch (error) {
    return `the bytes are not a BSON document: ${reasonOf(error)}`;
  }
  // Bytes after the document would go unnoticed here, and would break a batch that contains them.
  const size = sizeAt(document, 0);
  if (size !== document.length) return `the BSON document says ${size} bytes, got ${document.length}`;
  return elements.map(
    (element) => element && { type: element.type, bytes: document.subarray(element.valueAt, element.end) },
  );
}

/** The names that are asked for, in UTF-8. They are few: those of indexes. */
const NAMES = new Map<string, Uint8Array>();

function utf8Of(name: string): Uint8Array {
  const known = NAMES.get(name);
  if (known) return known;
  const utf8 = Buffer.from(name);
  NAMES.set(name, utf8);
  return utf8;
}
