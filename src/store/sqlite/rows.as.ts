// Rows as the embedded store keeps them: 0x03, four bytes of checksum, NUL, a BSON document. Each is a member of a BSON
// array whose name is the checksum, so a batch needs no copy of its rows. No byte of a name is NUL: its high bit is set.

const PRIME1: u64 = 0x9e3779b185ebca87, PRIME2: u64 = 0xc2b2ae3d27d4eb4f;
const HEAD: usize = 6;
const SMALLEST: usize = 5;

/** The rows that `walk` passed, where the last one begins, and whether rows were not compared. */
export let rows: i32 = 0;
export let last: usize = 0;
export let isUnsure: bool = false;

/** The checksum of bytes, as the name of a row. Each step is a bijection: no change of a single word goes unseen before the last fold. */
export function sum(at: usize, length: usize): u32 {
  const end = at + length;
  let one: u64 = PRIME1 + length, two: u64 = PRIME2 ^ length;
  for (; end - at >= 16; at += 16) {
    one = rotl(one ^ load<u64>(at), 29) * PRIME1;
    two = rotl(two ^ load<u64>(at, 8), 31) * PRIME2;
  }
  for (; end - at >= 4; at += 4) one = rotl(one ^ <u64>load<u32>(at), 27) * PRIME1;
  for (; at < end; at++) two = rotl(two ^ <u64>load<u8>(at), 25) * PRIME2;
  one ^= rotl(two, 17);
  one = (one ^ (one >> 32)) * PRIME2;
  return <u32>(one >> 32) | 0x80808080;
}

/**
 * Passes rows until there are `mostRows` of them or `mostBytes` bytes, and checks them. Returns where they end; 0: a row is damaged, or
 * does not lie behind the one before. `direction`: 1 or -1. At `path`: `_id` and then, where rows are not ordered by it
 * alone, the names on the path that they are ordered by first; each with its NUL.
 */
export function walk(at: usize, end: usize, mostRows: i32, mostBytes: usize, direction: i32, path: usize, pathEnd: usize): usize {
  const start = at, names = path + 4;
  let type: i32 = 0, value: usize = 0;
  rows = 0;
  last = 0;
  isUnsure = false;
  while (at < end && rows < mostRows && at - start < mostBytes) {
    if (end - at < HEAD + SMALLEST || load<u8>(at) != 3 || load<u8>(at, 5) != 0) return 0;
    const document = at + HEAD, size = <usize>load<u32>(document);
    if (size < SMALLEST || size > end - document || load<u32>(at, 1) != sum(document, size)) return 0;
    if (names == pathEnd) findId(document, path);
    else find(document, names, pathEnd);
    const ownType = foundType, own = found;
    if (rows > 0) {
      let order = compareValues(type, value, ownType, own);
      if (order == 0 && names != pathEnd) order = compareIds(last + HEAD, document, path);
      if (order == UNSURE) isUnsure = true;
      else if (order * direction >= 0) return 0;
    }
    type = ownType;
    value = own;
    last = at;
    rows++;
    at = document + size;
  }
  return at;
}

const DOUBLE = 1, STRING = 2, DOCUMENT = 3, ARRAY = 4, BINARY = 5, UNDEFINED = 6, OBJECT_ID = 7, BOOLEAN = 8, DATE = 9;
const NULL = 10, REGEX = 11, POINTER = 12, CODE = 13, SYMBOL = 14, SCOPED = 15, INT32 = 16, TIMESTAMP = 17, INT64 = 18;
const DECIMAL = 19, MAX_KEY = 127, MIN_KEY = 255;
/** The order of values that this module does not compare. */
const UNSURE = 2;

/** The type of a value that was looked for, null when there is none, and where it lies. */
let foundType: i32 = 0, found: usize = 0;

/** `_id` is the first member of nearly every document. */
function findId(document: usize, path: usize): void {
  if (load<u32>(document, 5) == load<u32>(path)) {
    foundType = load<u8>(document, 4);
    found = document + 9;
  } else find(document, path, path + 4);
}

/** The first member of each name counts. Only documents lead further down. */
function find(document: usize, name: usize, namesEnd: usize): void {
  const end = document + load<u32>(document) - 1;
  for (let at = document + 4; at < end;) {
    const type = <i32>load<u8>(at++);
    let own = name;
    while (load<u8>(at) == load<u8>(own) && load<u8>(own) != 0) { at++; own++; }
    const isNamed = load<u8>(at) == load<u8>(own);
    at = nulBehind(at);
    if (isNamed) {
      foundType = type;
      found = at;
      if (own + 1 == namesEnd || type == ARRAY) return;
      if (type != DOCUMENT) break;
      find(at, own + 1, namesEnd);
      return;
    }
    at = valueEnd(type, at);
  }
  foundType = NULL;
}

function nulBehind(at: usize): usize {
  while (load<u8>(at) != 0) at++;
  return at + 1;
}

function valueEnd(type: i32, at: usize): usize {
  switch (type) {
    case DOUBLE: case DATE: case TIMESTAMP: case INT64: return at + 8;
    case STRING: case CODE: case SYMBOL: return at + 4 + load<u32>(at);
    case DOCUMENT: case ARRAY: case SCOPED: return at + load<u32>(at);
    case BINARY: return at + 5 + load<u32>(at);
    case OBJECT_ID: return at + 12;
    case BOOLEAN: return at + 1;
    case REGEX: return nulBehind(nulBehind(at));
    case POINTER: return at + 16 + load<u32>(at);
    case INT32: return at + 4;
    case DECIMAL: return at + 16;
  }
  return at;
}

/** See BSON_RANK. */
function rankOf(type: i32): i32 {
  switch (type) {
    case MIN_KEY: return 1;
    case UNDEFINED: return 2;
    case NULL: return 5;
    case DOUBLE: case INT32: case INT64: case DECIMAL: return 10;
    case STRING: case SYMBOL: return 15;
    case DOCUMENT: return 20;
    case ARRAY: return 25;
    case BINARY: return 30;
    case OBJECT_ID: return 35;
    case BOOLEAN: return 40;
    case DATE: return 45;
    case TIMESTAMP: return 47;
    case REGEX: return 50;
    case POINTER: return 55;
    case CODE: return 60;
    case SCOPED: return 65;
  }
  return type;
}

function compareIds(one: usize, other: usize, path: usize): i32 {
  findId(one, path);
  const type = foundType, id = found;
  findId(other, path);
  return compareValues(type, id, foundType, found);
}

/** The order of two values: -1, 0, 1 or UNSURE. */
function compareValues(type: i32, a: usize, otherType: i32, b: usize): i32 {
  const rank = rankOf(type), otherRank = rankOf(otherType);
  if (rank != otherRank) return compare<i32>(rank, otherRank);
  switch (rank) {
    case 10: return compareNumbers(type, a, otherType, b);
    case 15: return compareBytes(a + 4, load<u32>(a), b + 4, load<u32>(b));
    case 30: {
      const size = load<u32>(a), otherSize = load<u32>(b);
      return size == otherSize ? compareBytes(a + 4, size + 1, b + 4, size + 1) : compare<u32>(size, otherSize);
    }
    case 35: return compareBytes(a, 12, b, 12);
    case 40: return compare<u8>(load<u8>(a), load<u8>(b));
    case 45: return compare<i64>(load<i64>(a), load<i64>(b));
    case 47: return compare<u64>(load<u64>(a), load<u64>(b));
    case 1: case 2: case 5: case 127: return 0;
  }
  return UNSURE;
}

function compareNumbers(type: i32, a: usize, otherType: i32, b: usize): i32 {
  if (type == DECIMAL || otherType == DECIMAL) return type == otherType ? compareDecimals(a, b) : UNSURE;
  if (type != DOUBLE && otherType != DOUBLE) return compare<i64>(wholeAt(type, a), wholeAt(otherType, b));
  const one = doubleAt(type, a), other = doubleAt(otherType, b);
  if (one != one || other != other) return compare<i32>(i32(one == one), i32(other == other)); // NaN is below all numbers
  if (one != other || type == otherType) return compare<f64>(one, other);
  return abs(one) < 9007199254740992 ? 0 : UNSURE; // several int64 have one nearest double
}

function wholeAt(type: i32, at: usize): i64 {
  return type == INT32 ? <i64>load<i32>(at) : load<i64>(at);
}

function doubleAt(type: i32, at: usize): f64 {
  return type == DOUBLE ? load<f64>(at) : <f64>wholeAt(type, at);
}

/** Compares those of at most 63 bits in the unit of the finer one, such as all amounts of money. */
function compareDecimals(a: usize, b: usize): i32 {
  const high = load<u64>(a, 8), otherHigh = load<u64>(b, 8);
  let value = load<i64>(a), other = load<i64>(b);
  if (!isPlain(high, value) || !isPlain(otherHigh, other)) return UNSURE;
  let finer = <i32>((high << 1) >> 50) - <i32>((otherHigh << 1) >> 50); // the difference of the exponents
  if (abs(finer) > 18) return UNSURE;
  for (; finer > 0; finer--) {
    if (value > MOST_TENTH) return UNSURE;
    value *= 10;
  }
  for (; finer < 0; finer++) {
    if (other > MOST_TENTH) return UNSURE;
    other *= 10;
  }
  return compare<i64>(<i64>high < 0 ? -value : value, <i64>otherHigh < 0 ? -other : other);
}

const MOST_TENTH: i64 = i64.MAX_VALUE / 10;

/** Whether a decimal is a number of at most 63 bits. */
function isPlain(high: u64, low: i64): bool {
  return (high << 15) == 0 && ((high >> 61) & 3) != 3 && low >= 0;
}

function compareBytes(a: usize, size: usize, b: usize, otherSize: usize): i32 {
  const order = memory.compare(a, b, min(size, otherSize));
  return order == 0 ? compare<usize>(size, otherSize) : compare<i32>(order, 0);
}

function compare<T>(a: T, b: T): i32 {
  return i32(a > b) - i32(a < b);
}
