// Strings and keys: UTF-8 in, escaped UTF-8 out.

/** Where writeText stopped reading. */
export let textReached: usize = 0;

/**
 * Writes [o, e) as JSON.stringify does, without the quotes, until it is done or `p > stop`. A NUL is at `e`, and one
 * more byte of the row follows it. `end` is where the batch ends. The output passes `stop` by at most 16 bytes.
 */
export function writeText(o: usize, e: usize, p: usize, stop: usize, end: usize): usize {
  while (o < e && p <= stop) {
    if (o + 16 <= end) {
      const v = v128.load(o);
      v128.store(p, v);
      const mask = notPlainAscii(v);
      if (mask == 0) { // separate from the other case, so that the next load does not wait for this mask
        o += 16;
        p += 16;
        continue;
      }
      const n = plainPrefix(v, ctz(mask));
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
      if (c >= 32 && c != 34 && c != 92) store<u8>(p++, c);
      else p = writeEscape(c, p);
      o++;
    }
  }
  textReached = o;
  return p;
}

/** Writes the character above ASCII at `o`, or U+FFFD if there is no valid one. Returns what `sequence` returns. */
// @ts-ignore: decorator
@inline export function writeSequence(o: usize, p: usize): isize {
  const n = sequence(o);
  store<u32>(p, n > 0 ? load<u32>(o) : 0xbdbfef);
  return n;
}

/** A bit for each byte that must be escaped: control characters, quote, backslash. */
// @ts-ignore: decorator
@inline function escapes(v: v128): i32 {
  return i8x16.bitmask(v128.or(
    v128.or(i8x16.eq(v, i8x16.splat(34)), i8x16.eq(v, i8x16.splat(92))),
    i8x16.lt_u(v, i8x16.splat(32)),
  ));
}

/** A bit for each byte that is above ASCII or must be escaped. */
// @ts-ignore: decorator
@inline export function notPlainAscii(v: v128): i32 {
  return i8x16.bitmask(v128.or(
    v128.or(i8x16.eq(v, i8x16.splat(34)), i8x16.eq(v, i8x16.splat(92))),
    i8x16.lt_s(v, i8x16.splat(32)), // as signed bytes, bytes above ASCII are below 0
  ));
}

/** How many bytes at the beginning of `v` are whole characters, written as they are. The first `ascii` are ASCII. */
// @ts-ignore: decorator
@inline function plainPrefix(v: v128, ascii: usize): usize {
  if ((i8x16.bitmask(v) >> <i32>ascii & 1) == 0) return ascii;
  return utf8Prefix(v, ctz(escapes(v) | 0x10000), ascii);
}

/**
 * plainPrefix for the case that the first `plain` bytes need no escape and only the first `ascii` are ASCII: all whole
 * sequences if every one is sound, otherwise `ascii`. The check is that of "Validating UTF-8 In Less Than One
 * Instruction Per Byte" (Keiser, Lemire; arXiv 2010.03090). Three tables of 16, indexed by the nibbles of two
 * neighbouring bytes, have a bit in common where these two cannot stand together. Bits:
 *
 *   1 too short, 2 too long, 4 overlong of 3, 8 too large, 16 surrogate, 32 overlong of 2,
 *   64 overlong of 4 or too large, 128 two continuations, which are valid directly after a lead of 3 or 4.
 */
export function utf8Prefix(v: v128, plain: usize, ascii: usize): usize {
  const none = i8x16.splat(0);
  const before = i8x16.shuffle(none, v, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
  const before2 = i8x16.shuffle(none, v, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
  const before3 = i8x16.shuffle(none, v, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28);
  const byLead = i8x16(2, 2, 2, 2, 2, 2, 2, 2, -128, -128, -128, -128, 33, 1, 21, 73);
  const byLow = i8x16(-25, -93, -125, -125, -117, -53, -53, -53, -53, -53, -53, -53, -53, -37, -53, -53);
  const byNext = i8x16(1, 1, 1, 1, 1, 1, 1, 1, -26, -82, -70, -70, 1, 1, 1, 1);
  const clash = v128.and(
    v128.and(
      i8x16.swizzle(byLead, i8x16.shr_u(before, 4)),
      i8x16.swizzle(byLow, v128.and(before, i8x16.splat(15))),
    ),
    i8x16.swizzle(byNext, i8x16.shr_u(v, 4)),
  );
  const third = i8x16.sub_sat_u(before2, i8x16.splat(0x60)); // from 0x80 where a lead of 3 or 4 is two bytes before
  const fourth = i8x16.sub_sat_u(before3, i8x16.splat(0x70));
  const expected = v128.and(v128.or(third, fourth), i8x16.splat(-128));
  const broken = i8x16.bitmask(i8x16.ne(v128.xor(clash, expected), none));
  // A sequence cut by the end of the plain bytes shows at the byte after them. Later bytes do not matter.
  if ((broken & ((2 << <i32>plain) - 1)) != 0) return ascii;
  // A sequence cut by the end of `v` is left to the next call.
  if (i8x16.extract_lane_u(v, 13) >= 0xf0) return min<usize>(plain, 13);
  if (i8x16.extract_lane_u(v, 14) >= 0xe0) return min<usize>(plain, 14);
  if (i8x16.extract_lane_u(v, 15) >= 0xc0) return min<usize>(plain, 15);
  return plain;
}

/**
 * The length of the UTF-8 sequence at `o`, a byte from 0x80. When it is broken, minus the bytes that the WHATWG decoder
 * replaces by one U+FFFD (https://encoding.spec.whatwg.org/#utf-8-decoder). The NUL after every text ends it.
 */
// @ts-ignore: decorator
@inline function sequence(o: usize): isize {
  const a = load<u8>(o);
  if (a < 0xc2 || a > 0xf4) return -1;
  const b = load<u8>(o, 1);
  if (b < (a == 0xe0 ? 0xa0 : a == 0xf0 ? 0x90 : 0x80)) return -1;
  if (b > (a == 0xed ? 0x9f : a == 0xf4 ? 0x8f : 0xbf)) return -1;
  if (a < 0xe0) return 2;
  if ((load<u8>(o, 2) & 0xc0) != 0x80) return -2;
  if (a < 0xf0) return 3;
  if ((load<u8>(o, 3) & 0xc0) != 0x80) return -3;
  return 4;
}

/** For each control character the letter of its short escape, 0 where there is none. */
const SHORT = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 98, 116, 110, 0, 102, 114, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]);

/** Writes a quote, backslash or control character as JSON.stringify does: at most 6 bytes. */
function writeEscape(c: u8, p: usize): usize {
  store<u8>(p, 92);
  const letter = c < 32 ? load<u8>(SHORT + c) : c;
  if (letter) {
    store<u8>(p, letter, 1);
    return p + 2;
  }
  store<u32>(p, 0x30303075, 1); // u000
  store<u8>(p, 48 + (c >> 4), 4);
  const low = c & 15;
  store<u8>(p, low < 10 ? 48 + low : 87 + low, 5);
  return p + 6;
}
