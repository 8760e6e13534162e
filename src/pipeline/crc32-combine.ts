/**
 * The CRC-32 of two joined pieces, from the CRC-32 of each and the length of the second: crc32_combine of zlib 1.3.1
 * (https://github.com/madler/zlib/blob/v1.3.1/crc32.c). A CRC is a polynomial over GF(2), with the lowest power in the
 * highest bit. Each byte that follows multiplies it by x^8, modulo the CRC's own polynomial.
 */
const POLYNOMIAL = 0xedb88320;

/** x^(2^n) modulo the polynomial, for n from 0 to 31. The powers repeat from there on, since x^(2^32-1) is 1. */
const SQUARES = squares();

/** The CRC-32 of A followed by B, whose length is in bytes. RangeError when `lengthB` is no integer of at least 0. */
export function crc32Combine(crcA: number, crcB: number, lengthB: number): number {
  if (!Number.isSafeInteger(lengthB) || lengthB < 0)
    throw new RangeError(`a length is an integer of at least 0, got ${lengthB}`);
  return (multiply(powerOfBytes(lengthB), crcA | 0) ^ crcB) >>> 0;
}

/** x^(8 * bytes) modulo the polynomial. */
function powerOfBytes(bytes: number): number {
  let power = 1 << 31; // x^0
  let left = bytes;
  for (let k = 3; left > 0; k = (k + 1) & 31) {
    if (left % 2 === 1) power = multiply(SQUARES[k] ?? 0, power);
    left = Math.floor(left / 2); // lengths can exceed 32 bits, which shifts cannot handle
  }
  return power;
}

/** a * b modulo the polynomial. */
function multiply(a: number, b: number): number {
  let product = 0;
  let shifted = b;
  for (let mask = 0x80000000; mask !== 0; mask >>>= 1) {
    if ((a & mask) !== 0) product ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ POLYNOMIAL;
  }
  return product;
}

function squares(): readonly number[] {
  const table = [1 << 30]; // x^1
  for (let n = 1; n < 32; n++) {
    const before = table[n - 1] ?? 0;
    table.push(multiply(before, before));
  }
  return table;
}
