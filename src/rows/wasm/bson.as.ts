// BSON (https://bsonspec.org/spec.html): where a value ends, and whether it may end there.

export const DOUBLE = 1, STRING = 2, DOCUMENT = 3, ARRAY = 4, BINARY = 5, UNDEFINED = 6, OBJECT_ID = 7, BOOLEAN = 8;
export const DATE = 9, NULL = 10, REGEX = 11, POINTER = 12, CODE = 13, SYMBOL = 14, SCOPED = 15, INT32 = 16;
export const TIMESTAMP = 17, INT64 = 18, DECIMAL = 19, MAX_KEY = 127, MIN_KEY = 255;

const VARIES: usize = 255;
/** The size of a value by its type. VARIES: see variableEnd. */
const SIZES = memory.data<u8>([
  255, 8, 255, 255, 255, 255, 0, 12, 1, 8, 0, 255, 255, 255, 255, 255,
  4, 8, 8, 16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
]);

/**
 * The end of the value at `at`. 0 when its type is unknown, its length or terminator is not sound, or it does not end
 * by `last`, the terminator of its document. `at` is not after `last`.
 */
// @ts-ignore: decorator
@inline export function valueEnd(type: i32, at: usize, last: usize): usize {
  const size = type < 32 ? <usize>load<u8>(SIZES + type) : VARIES;
  if (size == VARIES) return variableEnd(type, at, last);
  return size <= last - at ? at + size : 0;
}

/** As valueEnd, for a text. */
// @ts-ignore: decorator
@inline export function stringEnd(at: usize, last: usize): usize {
  const room = last - at;
  if (room < 5) return 0;
  const length = <usize>load<u32>(at);
  return length - 1 < room - 4 && load<u8>(at + 3 + length) == 0 ? at + 4 + length : 0; // no length of 0
}

function variableEnd(type: i32, at: usize, last: usize): usize {
  const room = last - at;
  if (type == MIN_KEY || type == MAX_KEY) return at;
  if (type == REGEX) {
    const pattern = findNul(at, last);
    const options = pattern == 0 ? 0 : findNul(pattern + 1, last);
    return options == 0 ? 0 : options + 1;
  }
  if (room < 5) return 0;
  const length = <usize>load<u32>(at);
  let size: usize = 0;
  switch (type) {
    case STRING: case CODE: case SYMBOL: case POINTER:
      if (length == 0 || length > room - 4 || load<u8>(at + 3 + length) != 0) return 0;
      size = length + (type == POINTER ? 16 : 4);
      break;
    case DOCUMENT: case ARRAY:
      if (length < 5 || length > room || load<u8>(at + length - 1) != 0) return 0;
      size = length;
      break;
    case BINARY:
      if (length > room - 5) return 0;
      // The old subtype 2 repeats the length inside the value.
      if (load<u8>(at, 4) == 2 && (length < 4 || <usize>load<u32>(at, 5) != length - 4)) return 0;
      size = length + 5;
      break;
    case SCOPED:
      // Three lengths, and the NUL of an empty string and of an empty document. Shorter values could be read no further.
      if (length < 14) return 0;
      size = length;
      break;
    default: return 0;
  }
  return size <= room ? at + size : 0;
}

/** The first NUL from `at` on and before `last`. 0 when there is none. */
export function findNul(at: usize, last: usize): usize {
  while (at < last) {
    if (load<u8>(at) == 0) return at;
    at++;
  }
  return 0;
}

/** Whether the key [at, at + length) is `_id` or `id`. */
// @ts-ignore: decorator
@inline export function isNamedId(at: usize, length: usize): bool {
  return length == 3
    ? load<u8>(at) == 95 && load<u16>(at, 1) == 0x6469
    : length == 2 && load<u16>(at) == 0x6469;
}

/** Whether a document whose elements begin at `at` has an `id`. False when it is not sound up to there. */
export function hasOwnId(at: usize, last: usize): bool {
  while (at < last) {
    const type = <i32>load<u8>(at);
    const nul = findNul(at + 1, last);
    if (nul == 0) return false;
    if (nul - at == 3 && isNamedId(at + 1, 2)) return true;
    at = valueEnd(type, nul + 1, last);
    if (at == 0) return false;
  }
  return false;
}

/** Whether a key is among these names: a count (u32), then for each name its length (u16) and bytes. */
export function isAmong(names: usize, at: usize, length: usize): bool {
  let name = names + 4;
  for (let left = load<u32>(names); left > 0; left--) {
    const size = <usize>load<u16>(name);
    if (size == length && memory.compare(name + 2, at, length) == 0) return true;
    name += 2 + size;
  }
  return false;
}

/** The element `_id` of a document whose elements begin at `at`. 0: there is none, or it is not sound. */
export function findId(at: usize, last: usize): usize {
  while (at < last) {
    const type = <i32>load<u8>(at);
    const nul = findNul(at + 1, last);
    if (nul == 0) return 0;
    if (nul - at == 4 && isNamedId(at + 1, 3)) return at;
    at = valueEnd(type, nul + 1, last);
    if (at == 0) return 0;
  }
  return 0;
}
