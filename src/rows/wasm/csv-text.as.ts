// Text of CSV cells, where quotes are doubled and everything else stays as it is, and of columns of Arrow.
import { utf8Prefix, writeSequence } from "./text.as";

/** Where writeQuoted and writeRaw stopped reading. */
export let quotedReached: usize = 0;

/** Ones wherever `v` has a comma, quote, CR or LF (RFC 4180, 2.6). Their low four bits differ: one look-up finds them. */
// @ts-ignore: decorator
@inline function specials(v: v128): v128 {
  const byLow = i8x16(1, 0, 34, 0, 0, 0, 0, 0, 0, 0, 10, 0, 44, 13, 0, 0);
  return i8x16.eq(v, i8x16.swizzle(byLow, v128.and(v, i8x16.splat(15))));
}

// @ts-ignore: decorator
@inline function isSpecial(c: u8): bool {
  return c == 44 || c == 34 || c == 10 || c == 13;
}

/** Whether [o, e) contains a comma, quote, CR or LF. `end` is the end of the batch. */
export function hasSpecial(o: usize, e: usize, end: usize): bool {
  while (o < e) {
    if (o + 16 <= end) {
      let mask = i8x16.bitmask(specials(v128.load(o)));
      if (e - o < 16) mask &= (1 << <i32>(e - o)) - 1;
      if (mask != 0) return true;
      o += 16;
    } else if (isSpecial(load<u8>(o++))) return true;
  }
  return false;
}

/** For each set of quotes among 8 bytes, a vector to swizzle by that doubles these quotes. */
const DOUBLED = memory.data(256 * 16, 16);
for (let quotes = 0; quotes < 256; quotes++) {
  let at = DOUBLED + <usize>(quotes << 4);
  for (let from = 0; from < 8; from++) {
    store<u8>(at++, <u8>from);
    if ((quotes >> from & 1) != 0) store<u8>(at++, <u8>from);
  }
}

/** Writes the JSON text [o, e) with doubled quotes, until done or `p > stop`. 8 bytes may be read after `e`. */
export function writeQuoted(o: usize, e: usize, p: usize, stop: usize): usize {
  while (o < e && p <= stop) {
    const v = v128.load64_zero(o);
    const n = min<usize>(8, e - o);
    const quotes = i8x16.bitmask(i8x16.eq(v, i8x16.splat(34))) & ((1 << <i32>n) - 1);
    v128.store(p, i8x16.swizzle(v, v128.load(DOUBLED + <usize>(quotes << 4))));
    o += n;
    p += n + <usize>popcnt(quotes);
  }
  quotedReached = o;
  return p;
}

/** Quotes in writeRaw: UNQUOTED stops at what makes a cell quoted, QUOTED doubles them, ANY leaves them. */
export const UNQUOTED = 0, QUOTED = 1, ANY = 2;

/** Writes the text [o, e) of a row, with broken UTF-8 as U+FFFD. A NUL is at `e`. `end` is the end of the batch. */
export function writeRaw(o: usize, e: usize, p: usize, stop: usize, end: usize, quotes: i32): usize {
  while (o < e && p <= stop) {
    if (o + 16 <= end) {
      const v = v128.load(o);
      v128.store(p, v);
      const special = quotes == UNQUOTED ? specials(v) : i8x16.eq(v, i8x16.splat(quotes == QUOTED ? 34 : 0));
      const mask = i8x16.bitmask(v128.or(special, v));
      if (mask == 0 && e - o >= 16) { // separate from the other case, as in writeText
        o += 16;
        p += 16;
        continue;
      }
      const plain = min<usize>(ctz(i8x16.bitmask(special) | 0x10000), e - o);
      const ascii = min<usize>(ctz(mask | 0x10000), plain);
      const n = ascii == plain ? plain : utf8Prefix(v, plain, ascii);
      if (n != 0) {
        o += n;
        p += n;
        continue;
      }
    }
    const c = load<u8>(o);
    if (c >= 0x80) {
      const n = writeSequence(o, p);
      o += abs(n);
      p += n > 0 ? n : 3;
    } else {
      if (quotes == UNQUOTED && isSpecial(c)) break;
      store<u8>(p++, c);
      if (c == 34 && quotes == QUOTED) store<u8>(p++, c);
      o++;
    }
  }
  quotedReached = o;
  return p;
}
