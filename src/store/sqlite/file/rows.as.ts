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

/** Passes rows until there are `mostRows` of them or `mostBytes` bytes, and checks them. Returns where they end; 0: a row is damaged. */
export function walk(at: usize, end: usize, mostRows: i32, mostBytes: usize): usize {
  const start = at;
  rows = 0;
  last = 0;
  while (at < end && rows < mostRows && at - start < mostBytes) {
    if (end - at < HEAD + SMALLEST || load<u8>(at) != 3 || load<u8>(at, 5) != 0) return 0;
    const document = at + HEAD, size = <usize>load<u32>(document);
    if (size < SMALLEST || size > end - document || load<u32>(at, 1) != sum(document, size)) return 0;
    last = at;
    rows++;
    at = document + size;
  }
  return at;
}

/**
 * Copies rows that lie between two places, the last one first, to another place: they come to lie in the opposite order.
 * Returns false when they are no rows.
 */
export function reverse(at: usize, end: usize, to: usize): bool {
  let top = to + (end - at);
  while (at < end) {
    if (end - at < HEAD + SMALLEST) return false;
    const size = <usize>load<u32>(at, HEAD);
    if (size < SMALLEST || size > end - at - HEAD) return false;
    const next = at + HEAD + size;
    top -= HEAD + size;
    let place = top;
    for (; next - at >= 16; at += 16, place += 16) v128.store(place, v128.load(at));
    for (; at < next; at++, place++) store<u8>(place, load<u8>(at));
  }
  return true;
}
