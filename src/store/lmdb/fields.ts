import { onDemand } from '../bson.ts';
import { BSON_TYPE } from '../bson-types.ts';
import { reasonOf } from '../../thrown.ts';
import type { Value } from './keys.ts';

/** Sizes of values of a fixed size, in bytes, by type. */
const FIXED = new Int8Array(256).fill(-1);
for (const [type, size] of [
  [BSON_TYPE.double, 8],
  [BSON_TYPE.undefined, 0],
  [BSON_TYPE.objectId, 12],
  [BSON_TYPE.boolean, 1],
  [BSON_TYPE.date, 8],
  [BSON_TYPE.null, 0],
  [BSON_TYPE.int32, 4],
  [BSON_TYPE.timestamp, 8],
  [BSON_TYPE.int64, 8],
  [BSON_TYPE.decimal128, 16],
  [BSON_TYPE.maxKey, 0],
  [BSON_TYPE.minKey, 0],
] as const)
  FIXED[type] = size;

/** What precedes the bytes that the length of a value counts: the length, and a subtype. Bytes, by type. */
const COUNTED = new Int8Array(256).fill(-1);
for (const [type, size] of [
  [BSON_TYPE.string, 4],
  [BSON_TYPE.symbol, 4],
  [BSON_TYPE.code, 4],
  [BSON_TYPE.document, 0],
  [BSON_TYPE.array, 0],
  [BSON_TYPE.scopedCode, 0],
  [BSON_TYPE.binary, 5],
] as const)
  COUNTED[type] = size;

/**
 * The values of the named top-level fields (the first of each name, undefined when it is missing). A text instead when
 * the bytes are not a BSON document. It runs for every row that is written, so it does not list all elements as bson's
 * parser does.
 */
export function fieldsOf(document: Uint8Array, names: readonly string[]): (Value | undefined)[] | string {
  return scan(document, names) ?? parsed(document, names);
}

/** Where the values of some fields are in a document. Used again for each document, so that a row costs no objects. */
export class FieldPlaces {
  /** By the place of the name: the BSON type, or 0 when the document has no such field; where its bytes begin and end. */
  readonly types: Int32Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly #names: readonly Uint8Array[];

  constructor(names: readonly string[]) {
    this.#names = names.map(utf8Of);
    [this.types, this.starts, this.ends] = [
      new Int32Array(names.length),
      new Int32Array(names.length),
      new Int32Array(names.length),
    ];
  }

  /** Finds the first field of each name. False for a document that is damaged, or has a value of a rare type. */
  find(document: Uint8Array): boolean {
    const { types, starts, ends } = this;
    const names = this.#names;
    const end = document.length - 1;
    types.fill(0);
    if (end < 4 || document[end] !== 0 || sizeAt(document, 0) !== document.length) return false;
    let at = 4;
    while (at < end) {
      const type = document[at] ?? 0;
      const name = at + 1;
      let valueAt = name;
      while (valueAt < end && document[valueAt] !== 0) valueAt++;
      valueAt++;
      const size = sizeOfValue(document, type, valueAt);
      at = valueAt + size;
      if (size < 0 || at > end) return false;
      const index = indexOfName(document, name, valueAt - 1 - name, names);
      if (index < 0 || types[index] !== 0) continue;
      types[index] = type;
      starts[index] = valueAt;
      ends[index] = at;
    }
    return at === end;
  }
}

/** Null for a document that is damaged, or has a value of a rare type. */
function scan(document: Uint8Array, names: readonly string[]): (Value | undefined)[] | null {
  const places = new FieldPlaces(names);
  if (!places.find(document)) return null;
  return Array.from(places.types, (type, index) => {
    const bytes = document.subarray(places.starts[index], places.ends[index]);
    return type === 0 ? undefined : { type, bytes };
  });
}

/** -1 when the type is none of those above. */
function sizeOfValue(document: Uint8Array, type: number, at: number): number {
  const fixed = FIXED[type] ?? -1;
  if (fixed >= 0) return fixed;
  const counted = COUNTED[type] ?? -1;
  if (counted < 0) return -1;
  const size = sizeAt(document, at);
  return size < 0 ? -1 : counted + size;
}

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

function sizeAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24)
  );
}

/** The same for any document. A text for bytes that are none. */
function parsed(document: Uint8Array, names: readonly string[]): (Value | undefined)[] | string {
  let elements;
  try {
    elements = onDemand.parseToElements(document);
  } catch (error) {
    return `the bytes are not a BSON document: ${reasonOf(error)}`;
  }
  // Bytes after the document would go unnoticed here, and would break a batch that contains them.
  const size = new DataView(document.buffer, document.byteOffset).getInt32(0, true);
  if (size !== document.length) return `the BSON document says ${size} bytes, got ${document.length}`;
  const buffer = Buffer.from(document.buffer, document.byteOffset, document.length);
  const values: (Value | undefined)[] = names.map(() => undefined);
  for (const [type, nameAt, nameLength, at, length] of elements) {
    const index = names.indexOf(buffer.toString('utf8', nameAt, nameAt + nameLength));
    if (index >= 0) values[index] ??= { type, bytes: document.subarray(at, at + length) };
  }
  return values;
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
