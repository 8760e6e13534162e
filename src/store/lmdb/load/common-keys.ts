import { BSON_RANK, BSON_TYPE } from '../../bson-types.ts';
import { writeNumberKey } from '../../keys.ts';

const OBJECT_ID_BYTES = 12;
/** The bytes of a number, for its conversion. */
const NUMBER = new DataView(new ArrayBuffer(8));

/**
 * Writes the key of a value that is a number, an ObjectId or a string, whose bytes are in a document. Returns where the
 * key ends in `target`. -1 for a value that keyOfValue is needed for: of another type, or rare. A load thus makes the
 * keys of most rows without an object for each.
 */
export function writeCommonKey(
  type: number,
  document: Uint8Array,
  from: number,
  to: number,
  target: Uint8Array,
  at: number,
): number {
  switch (type) {
    case BSON_TYPE.double:
    case BSON_TYPE.int32:
      if (to - from !== (type === BSON_TYPE.double ? 8 : 4)) return -1;
      for (let n = 0; from + n < to; n++) NUMBER.setUint8(n, document[from + n] ?? 0);
      return writeNumberKey(
        type === BSON_TYPE.double ? NUMBER.getFloat64(0, true) : NUMBER.getInt32(0, true),
        0,
        target,
        at,
      );
    case BSON_TYPE.objectId:
      if (to - from !== OBJECT_ID_BYTES) return -1;
      target[at] = BSON_RANK.objectId;
      for (let n = 0; n < OBJECT_ID_BYTES; n++) target[at + 1 + n] = document[from + n] ?? 0;
      return at + 1 + OBJECT_ID_BYTES;
    case BSON_TYPE.string:
      return to - from < 5 ? -1 : writeStringKey(document, from + 4, to - 1, target, at);
    default:
      return -1;
  }
}

/** The same for a text in UTF-8. -1 for one that has a NUL. */
function writeStringKey(
  utf8: Uint8Array,
  from: number,
  to: number,
  target: Uint8Array,
  start: number,
): number {
  let at = start;
  target[at++] = BSON_RANK.string;
  for (let n = from; n < to; n++) {
    const byte = utf8[n] ?? 0;
    if (byte === 0) return -1;
    target[at++] = byte;
  }
  target[at++] = 0;
  target[at++] = 0;
  return at;
}
