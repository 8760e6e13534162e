// XXH64 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), for ETags; one hash at a time.

const PRIME1: u64 = 0x9e3779b185ebca87, PRIME2: u64 = 0xc2b2ae3d27d4eb4f, PRIME3: u64 = 0x165667b19e3779f9;
const PRIME4: u64 = 0x85ebca77c2b2ae63, PRIME5: u64 = 0x27d4eb2f165667c5;
let lane1: u64, lane2: u64, lane3: u64, lane4: u64, hashSeed: u64, hashed: u64;

// @ts-ignore: decorator
@inline function round(lane: u64, word: u64): u64 {
  return rotl(lane + word * PRIME2, 31) * PRIME1;
}

export function hashBegin(seed: u64): void {
  lane1 = seed + PRIME1 + PRIME2;
  lane2 = seed + PRIME2;
  lane3 = seed;
  lane4 = seed - PRIME1;
  hashSeed = seed;
  hashed = 0;
}

/** Adds `length` bytes, a multiple of 32, to the hash. */
export function hashBlocks(at: usize, length: usize): void {
  hashed += length;
  for (const end = at + length; at < end; at += 32) {
    lane1 = round(lane1, load<u64>(at));
    lane2 = round(lane2, load<u64>(at, 8));
    lane3 = round(lane3, load<u64>(at, 16));
    lane4 = round(lane4, load<u64>(at, 24));
  }
}

/** Adds the last `length` bytes, fewer than 32, and returns the hash. */
export function hashEnd(at: usize, length: usize): u64 {
  let hash: u64;
  if (hashed) {
    hash = rotl(lane1, 1) + rotl(lane2, 7) + rotl(lane3, 12) + rotl(lane4, 18);
    hash = (hash ^ round(0, lane1)) * PRIME1 + PRIME4;
    hash = (hash ^ round(0, lane2)) * PRIME1 + PRIME4;
    hash = (hash ^ round(0, lane3)) * PRIME1 + PRIME4;
    hash = (hash ^ round(0, lane4)) * PRIME1 + PRIME4;
  } else hash = hashSeed + PRIME5;
  hash += hashed + length;
  const end = at + length;
  for (; end - at >= 8; at += 8) hash = rotl(hash ^ round(0, load<u64>(at)), 27) * PRIME1 + PRIME4;
  if (end - at >= 4) {
    hash = rotl(hash ^ (<u64>load<u32>(at) * PRIME1), 23) * PRIME2 + PRIME3;
    at += 4;
  }
  for (; at < end; at++) hash = rotl(hash ^ (<u64>load<u8>(at) * PRIME5), 11) * PRIME1;
  hash = (hash ^ (hash >> 33)) * PRIME2;
  hash = (hash ^ (hash >> 29)) * PRIME3;
  return hash ^ (hash >> 32);
}
