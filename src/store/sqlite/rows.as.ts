// Rows as the embedded store keeps them: 0x03, four bytes of checksum, NUL, a BSON document. Each is a member of a BSON
// array whose name is the checksum, so a batch needs no copy of its rows. No byte of a name is NUL: its high bit is set.

const PRIME1: u64 = 0x9e3779b185ebca87, PRIME2: u64 = 0xc2b2ae3d27d4eb4f;
const HEAD: usize = 6;
const SMALLEST: usize = 5;

/** The rows that `walk` passed, and where the last one begins. */
export let rows: i32 = 0;
export let last: usize = 0;

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

const ID: u32 = 0x0064695f; // _id and its end

/**
 * Whether a document lies in the order of ids behind another one. True for ids of two types, or of a rare one, and where the
 * id is not the first member: these are not compared.
 */
function follows(one: usize, other: usize, direction: i32): bool {
  const type = load<u8>(one, 4);
  if (type != load<u8>(other, 4) || load<u32>(one, 5) != ID || load<u32>(other, 5) != ID) return true;
  const a = one + 9, b = other + 9;
  let order: i32;
  if (type == 0x02) {
    const lengthA = load<u32>(a), lengthB = load<u32>(b);
    order = memory.compare(a + 4, b + 4, min(lengthA, lengthB));
    if (order == 0) order = compare<u32>(lengthA, lengthB);
  } else if (type == 0x07) order = memory.compare(a, b, 12);
  else if (type == 0x10) order = compare<i32>(load<i32>(a), load<i32>(b));
  else if (type == 0x12 || type == 0x09) order = compare<i64>(load<i64>(a), load<i64>(b));
  else return true;
  return order * direction < 0;
}

function compare<T>(a: T, b: T): i32 {
  return i32(a > b) - i32(a < b);
}

/**
 * Passes rows until there are so many, or so many bytes, and checks them. Returns where they end; 0: a row is damaged, or
 * does not lie behind the one before. `direction`: of the ids, 1 or -1; 0: the rows have another order.
 */
export function walk(at: usize, end: usize, mostRows: i32, mostBytes: usize, direction: i32): usize {
  const start = at;
  rows = 0;
  while (at < end && rows < mostRows && at - start < mostBytes) {
    if (end - at < HEAD + SMALLEST || load<u8>(at) != 3 || load<u8>(at, 5) != 0) return 0;
    const size = <usize>load<u32>(at, HEAD);
    if (size < SMALLEST || size > end - at - HEAD) return 0;
    if (load<u32>(at, 1) != sum(at + HEAD, size)) return 0;
    if (direction != 0 && rows > 0 && !follows(last + HEAD, at + HEAD, direction)) return 0;
    last = at;
    rows++;
    at += HEAD + size;
  }
  return at;
}
