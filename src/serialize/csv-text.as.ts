// Text of CSV cells: quotes doubled, everything else as it is.
import { utf8Prefix, writeSequence } from "./text.as";

/** Where writeQuoted and writeRaw stopped reading. */
export let quotedReached: usize = 0;

/** Whether [o, e) holds a comma, quote, CR or LF, for which a cell is quoted (RFC 4180, 2.6). `end`: of the batch. */
export function isSpecial(o: usize, e: usize, end: usize): bool {
  while (o < e) {
    if (o + 16 <= end) {
      const v = v128.load(o);
      let mask = i8x16.bitmask(v128.or(
        v128.or(i8x16.eq(v, i8x16.splat(44)), i8x16.eq(v, i8x16.splat(34))),
        v128.or(i8x16.eq(v, i8x16.splat(10)), i8x16.eq(v, i8x16.splat(13))),
      ));
      if (e - o < 16) mask &= (1 << <i32>(e - o)) - 1;
      if (mask != 0) return true;
      o += 16;
      continue;
    }
    const c = load<u8>(o++);
    if (c == 44 || c == 34 || c == 10 || c == 13) return true;
  }
  return false;
}

/** Writes the JSON text [o, e), which 16 bytes may be read behind, with its quotes doubled, until it is done or `p > stop`. */
export function writeQuoted(o: usize, e: usize, p: usize, stop: usize): usize {
  while (o < e && p <= stop) {
    const v = v128.load(o);
    v128.store(p, v);
    const plain = min<usize>(ctz(i8x16.bitmask(i8x16.eq(v, i8x16.splat(34))) | 0x10000), e - o);
    o += plain;
    p += plain;
    if (plain == 16 || o >= e) continue;
    store<u16>(p, 0x2222);
    p += 2;
    o++;
  }
  quotedReached = o;
  return p;
}

/** Writes the text [o, e) of a row: quotes doubled, broken UTF-8 as U+FFFD. A NUL stands at `e`; `end`: of the batch. */
export function writeRaw(o: usize, e: usize, p: usize, stop: usize, end: usize): usize {
  while (o < e && p <= stop) {
    if (o + 16 <= end) {
      const v = v128.load(o);
      v128.store(p, v);
      const plain = min<usize>(ctz(i8x16.bitmask(i8x16.eq(v, i8x16.splat(34))) | 0x10000), e - o);
      const ascii = min<usize>(ctz(i8x16.bitmask(v) | 0x10000), plain);
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
      store<u8>(p++, c);
      if (c == 34) store<u8>(p++, c);
      o++;
    }
  }
  quotedReached = o;
  return p;
}
