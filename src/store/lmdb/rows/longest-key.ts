import { joinKeys, type Key } from '../../keys.ts';

/** LMDB's limit. Bytes. */
export const LONGEST_KEY = 1_978;

/**
 * An exclusive lower bound of at most `most` bytes that the same keys are above as are above `bound`. A query can name
 * values that are longer than any key, and LMDB takes no longer bound. No key has more than `most` bytes.
 */
export function lowerBound(bound: Key, most = LONGEST_KEY): Key {
  return bound.length > most ? bound.subarray(0, most) : bound;
}

/** The same for an exclusive upper bound: a key that is the beginning of `bound` is below it. */
export function upperBound(bound: Key, most = LONGEST_KEY): Key {
  if (bound.length <= most) return bound;
  let end = most - 1;
  while (end > 0 && bound[end] === 0xff) end--;
  return joinKeys(bound.subarray(0, end), Uint8Array.of((bound[end] ?? 0) + 1));
}
