// Numbers: integers, doubles as JavaScript prints them, Decimal128.

/** Writes a finite double as JavaScript prints it to `out` (at most 25 bytes). Returns the length. */
@external("host", "number") declare function hostNumber(value: f64, out: usize): usize;
/** Writes the Decimal128 (16 bytes at `at`) to `out` (at most 48 bytes). Returns the length. */
@external("host", "decimal") declare function hostDecimal(at: usize, out: usize): usize;

/** "00".."99" as 16-bit words. */
export const PAIRS = memory.data<u16>([
  0x3030, 0x3130, 0x3230, 0x3330, 0x3430, 0x3530, 0x3630, 0x3730, 0x3830, 0x3930,
  0x3031, 0x3131, 0x3231, 0x3331, 0x3431, 0x3531, 0x3631, 0x3731, 0x3831, 0x3931,
  0x3032, 0x3132, 0x3232, 0x3332, 0x3432, 0x3532, 0x3632, 0x3732, 0x3832, 0x3932,
  0x3033, 0x3133, 0x3233, 0x3333, 0x3433, 0x3533, 0x3633, 0x3733, 0x3833, 0x3933,
  0x3034, 0x3134, 0x3234, 0x3334, 0x3434, 0x3534, 0x3634, 0x3734, 0x3834, 0x3934,
  0x3035, 0x3135, 0x3235, 0x3335, 0x3435, 0x3535, 0x3635, 0x3735, 0x3835, 0x3935,
  0x3036, 0x3136, 0x3236, 0x3336, 0x3436, 0x3536, 0x3636, 0x3736, 0x3836, 0x3936,
  0x3037, 0x3137, 0x3237, 0x3337, 0x3437, 0x3537, 0x3637, 0x3737, 0x3837, 0x3937,
  0x3038, 0x3138, 0x3238, 0x3338, 0x3438, 0x3538, 0x3638, 0x3738, 0x3838, 0x3938,
  0x3039, 0x3139, 0x3239, 0x3339, 0x3439, 0x3539, 0x3639, 0x3739, 0x3839, 0x3939,
]);

/** Writes `value`, which is below 10^`width`, with leading zeros. */
// @ts-ignore: decorator
@inline export function writePadded(value: u32, width: usize, p: usize): usize {
  let at = p + width;
  while (at >= p + 2) {
    at -= 2;
    const rest = value / 100;
    store<u16>(at, load<u16>(PAIRS + ((value - rest * 100) << 1)));
    value = rest;
  }
  if (at > p) store<u8>(p, <u8>(48 + value));
  return p + width;
}

// @ts-ignore: decorator
@inline function digitsOf(value: u32): usize {
  if (value < 100) return value < 10 ? 1 : 2;
  if (value < 10000) return value < 1000 ? 3 : 4;
  if (value < 1000000) return value < 100000 ? 5 : 6;
  if (value < 100000000) return value < 10000000 ? 7 : 8;
  return value < 1000000000 ? 9 : 10;
}

function writeU64(value: u64, p: usize): usize {
  if (value < 0x100000000) return writePadded(<u32>value, digitsOf(<u32>value), p);
  const rest = value / 100000000;
  return writePadded(<u32>(value - rest * 100000000), 8, writeU64(rest, p));
}

// @ts-ignore: decorator
@inline export function writeI64(value: i64, p: usize): usize {
  if (value < 0) {
    store<u8>(p++, 45);
    value = -value; // the smallest i64 stays itself, which is the right u64
  }
  return writeU64(<u64>value, p);
}

/** Writes `digits` / 10^`places` without removing trailing zeros. `places` is 1 to 9. */
function writePlaces(digits: u64, places: i32, p: usize): usize {
  const start = p + 1;
  p = writeU64(digits, start);
  // At least one digit is before the point. Leading zeros are added when there are too few.
  const missing = places + 1 - <i32>(p - start);
  if (missing > 0) {
    memory.copy(start + missing, start, p - start);
    memory.fill(start, 48, missing);
    p += missing;
  }
  // The digits before the point move one byte to the left.
  const point = p - places - 1;
  let at = start - 1;
  while (at < point) { store<u8>(at, load<u8>(at, 1)); at++; }
  store<u8>(point, 46);
  return p;
}

/**
 * Writes a double as JavaScript prints it: by the fewest digits that restore it. An integer below 2^53 is exact, so all
 * digits are written. Otherwise m / 10^k if the division restores the double and m has at most 15 digits: no two such
 * decimals are the same double, so none is shorter. JavaScript prints all others.
 */
export function writeDouble(value: f64, p: usize): usize {
  if (!(abs(value) < Infinity)) return writeNull(p); // NaN too
  if (value < 0) {
    store<u8>(p++, 45);
    value = -value;
  }
  const cents = nearest(value * 100);
  if (cents < 4294967296 && cents / 100 == value) {
    const whole = <u32>cents / 100;
    const rest = <u32>cents - whole * 100;
    p = writePadded(whole, digitsOf(whole), p);
    if (rest) {
      store<u8>(p, 46);
      store<u16>(p, load<u16>(PAIRS + (rest << 1)), 1);
      p += rest % 10 ? 3 : 2;
    }
    return p;
  }
  if (value < 9007199254740992 && floor(value) == value) return writeU64(<u64>value, p);
  if (value >= 0.000001) { // below, JavaScript prints an exponent
    const m4 = nearest(value * 10000);
    if (m4 < 1e15 && m4 / 10000 == value) return writeTrimmed(<u64>m4, 4, p);
    const m9 = nearest(value * 1000000000);
    if (m9 < 1e15 && m9 / 1000000000 == value) return writeTrimmed(<u64>m9, 9, p);
  }
  return p + hostNumber(value, p);
}

/** Writes `digits` / 10^`places` without trailing zeros. `digits` is not a multiple of 10^places. */
function writeTrimmed(digits: u64, places: i32, p: usize): usize {
  let tenth = digits / 10;
  while (tenth * 10 == digits) {
    digits = tenth;
    tenth = digits / 10;
    places--;
  }
  return writePlaces(digits, places, p);
}

/** Writes the exact digits as the Decimal128 specification does, a JSON number. NaN and infinities are null. */
export function writeDecimal128(o: usize, p: usize): usize {
  const high = load<u64>(o, 8);
  if (((high >> 59) & 15) == 15) return writeNull(p);
  const exponent = <i32>((high >> 49) & 0x3fff) - 6176;
  // The form of most money values: digits below 2^64, up to 6 places. JavaScript prints all other forms.
  if ((high & 0x1ffffffffffff) == 0 && exponent <= 0 && exponent >= -6) {
    const digits = load<u64>(o);
    if (high >> 63) store<u8>(p++, 45);
    return exponent == 0 ? writeU64(digits, p) : writePlaces(digits, -exponent, p);
  }
  return p + hostDecimal(o, p);
}

// @ts-ignore: decorator
@inline export function writeNull(p: usize): usize {
  store<u32>(p, 0x6c6c756e);
  return p + 4;
}
