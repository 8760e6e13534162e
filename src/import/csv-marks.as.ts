// Finds the bytes that a table of CSV is cut at, sixteen at once. AssemblyScript, compiled by build.mjs to csv-marks.wasm.

const QUOTE: i8 = 0x22;
const LF: i8 = 0x0a;
const CR: i8 = 0x0d;

/**
 * Writes where delimiters, quotes, LF and CR are among the bytes from `at` on, to `to`: each place counts from `at`, plus `base`.
 * Returns their number. There are 15 bytes behind the last one that may be read.
 */
export function mark(at: usize, length: usize, to: usize, base: u32, delimiter: i32): i32 {
  const delimiters = i8x16.splat(<i8>delimiter);
  const quotes = i8x16.splat(QUOTE);
  const lineFeeds = i8x16.splat(LF);
  const returns = i8x16.splat(CR);
  const first = to;
  for (let from: usize = 0; from < length; from += 16) {
    const bytes = v128.load(at + from);
    const found = v128.or(
      v128.or(i8x16.eq(bytes, delimiters), i8x16.eq(bytes, quotes)),
      v128.or(i8x16.eq(bytes, lineFeeds), i8x16.eq(bytes, returns)),
    );
    let bits = i8x16.bitmask(found);
    if (length - from < 16) bits &= (1 << <i32>(length - from)) - 1;
    for (; bits != 0; bits &= bits - 1, to += 4) store<u32>(to, base + <u32>from + ctz(bits));
  }
  return <i32>((to - first) >> 2);
}
