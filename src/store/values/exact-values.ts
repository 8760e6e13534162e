import { Binary, BSON, Code, onDemand } from './bson.ts';
import { documentWith, elementOf } from './bson-elements.ts';
import { BSON_TYPE } from './bson-types.ts';

const EXACT = {
  promoteValues: false,
  promoteBuffers: false,
  bsonRegExp: true, // a pattern of another language than JavaScript's is no RegExp
  validation: { utf8: false },
} as const;

/** Types of values that have names in them (a document, an array, and code with its scope), or are checked when written. */
const EXAMINED: readonly number[] = [
  BSON_TYPE.document,
  BSON_TYPE.array,
  BSON_TYPE.scopedCode,
  BSON_TYPE.binary,
];

/**
 * The members of a BSON document as BSON classes (Int32, Double, Long, ...). Documents among them are Maps, which BSON
 * writes as they were: a JavaScript object sorts names like "1" to the front, takes `_bsontype` for a class, and
 * cannot have a member `__proto__`. BSON errors when the bytes are no document.
 */
export function exactValues(document: Uint8Array): Record<string, unknown> {
  const values = BSON.deserialize(document, EXACT); // deserialize also validates every length
  const isFlat = [...onDemand.parseToElements(document)].every(([type]) => !EXAMINED.includes(type));
  return isFlat ? values : Object.fromEntries(members(document));
}

function* members(document: Uint8Array): Generator<[name: string, value: unknown], void, undefined> {
  for (const [type, nameAt, nameLength, at, length] of onDemand.parseToElements(document)) {
    const name = Buffer.from(document.subarray(nameAt, nameAt + nameLength)).toString();
    yield [name, valueOf(type, document.subarray(at, at + length))];
  }
}

function valueOf(type: number, value: Uint8Array): unknown {
  if (type === BSON_TYPE.document) return new Map(members(value));
  if (type === BSON_TYPE.array) return [...members(value)].map(([, element]) => element);
  if (type === BSON_TYPE.scopedCode) return scopedCode(value);
  const read: unknown = BSON.deserialize(documentWith(elementOf(type, '', value)), EXACT)[''];
  if (read instanceof Binary && read.sub_type === Binary.SUBTYPE_VECTOR) read.sub_type |= UNCHECKED;
  return read;
}

/** Above the byte of a subtype. BSON refuses to write a vector that is not valid, and rows of other programs have such. */
const UNCHECKED = 0x100;

/** Size (4 bytes), the text as a BSON string (its size, the text, NUL), the scope. */
function scopedCode(value: Uint8Array): Code {
  const size = Buffer.from(value).readInt32LE(4);
  const text = Buffer.from(value.subarray(8, 8 + size - 1)).toString();
  return new Code(text, new Map(members(value.subarray(8 + size))));
}
