// Bytes as text: base64, hexadecimal digits, UUIDs.

/** Where writeBase64 stopped reading. */
export let base64Reached: usize = 0;

const DIGITS = memory.data<u8>([
  65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90,
  97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119,
  120, 121, 122, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 43, 47,
]);

/** Writes [o, e) as base64 until it is done or `p > stop`. It stops only between two groups of three bytes. */
export function writeBase64(o: usize, e: usize, p: usize, stop: usize): usize {
  while (e - o >= 3 && p <= stop) {
    const group = (<u32>load<u8>(o) << 16) | (<u32>load<u8>(o, 1) << 8) | <u32>load<u8>(o, 2);
    writeGroup(group, p);
    o += 3;
    p += 4;
  }
  const left = e - o;
  if ((left == 1 || left == 2) && p <= stop) {
    writeGroup((<u32>load<u8>(o) << 16) | (left == 2 ? <u32>load<u8>(o, 1) << 8 : 0), p);
    store<u8>(p, 61, 3);
    if (left == 1) store<u8>(p, 61, 2);
    o = e;
    p += 4;
  }
  base64Reached = o;
  return p;
}

// @ts-ignore: decorator
@inline function writeGroup(group: u32, p: usize): void {
  store<u8>(p, load<u8>(DIGITS + (group >> 18)));
  store<u8>(p, load<u8>(DIGITS + ((group >> 12) & 63)), 1);
  store<u8>(p, load<u8>(DIGITS + ((group >> 6) & 63)), 2);
  store<u8>(p, load<u8>(DIGITS + (group & 63)), 3);
}

/** Writes 16 bytes as 32 hexadecimal digits. */
// @ts-ignore: decorator
@inline function writeHex(v: v128, p: usize): void {
  const digits = i8x16(48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102);
  const high = i8x16.swizzle(digits, i8x16.shr_u(v, 4));
  const low = i8x16.swizzle(digits, v128.and(v, i8x16.splat(15)));
  v128.store(p, i8x16.shuffle(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  v128.store(p, i8x16.shuffle(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16);
}

/** Writes the 12 bytes at `o` as 24 quoted digits. */
// @ts-ignore: decorator
@inline export function writeObjectId(o: usize, p: usize): usize {
  store<u8>(p, 34);
  writeHex(i64x2(load<u64>(o), <u64>load<u32>(o, 8)), p + 1);
  store<u8>(p, 34, 25);
  return p + 26;
}

const SCRATCH = memory.data(32);

/** Writes the 16 bytes at `o` as a quoted UUID: 8-4-4-4-12 digits (RFC 9562). */
export function writeUuid(o: usize, p: usize): usize {
  writeHex(v128.load(o), SCRATCH);
  store<u8>(p, 34);
  store<u64>(p, load<u64>(SCRATCH), 1);
  store<u8>(p, 45, 9);
  store<u32>(p, load<u32>(SCRATCH, 8), 10);
  store<u8>(p, 45, 14);
  store<u32>(p, load<u32>(SCRATCH, 12), 15);
  store<u8>(p, 45, 19);
  store<u32>(p, load<u32>(SCRATCH, 16), 20);
  store<u8>(p, 45, 24);
  store<u64>(p, load<u64>(SCRATCH, 20), 25);
  store<u32>(p, load<u32>(SCRATCH, 28), 33);
  store<u8>(p, 34, 37);
  return p + 38;
}
