// Decimal128 as numbers of Arrow: the nearest double, and the digits of decimal128(38, s).
import { DECIMAL, DOUBLE, INT32, INT64 } from "./bson.as";

/** The double nearest to the Decimal128 at `at` (16 bytes). */
@external("host", "double") declare function hostDouble(at: usize): f64;

const LARGEST_EXACT: u64 = 9007199254740992;
/** The powers of ten that doubles have exactly, 10^0 to 10^22. */
const POWERS = memory.data<f64>([
  1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
]);
/** 34 digits and this exponent are below the largest double. */
const SAFE_EXPONENT: i32 = 274;

// @ts-ignore: decorator
@inline function exponentOf(high: u64): i32 { return <i32>((high >> 49) & 0x3fff) - 6176; }

/** Whether a Decimal128 is NaN or infinite. `high`: its last 8 bytes. */
// @ts-ignore: decorator
@inline export function isNoNumber(high: u64): bool { return ((high >> 59) & 15) == 15; }

/**
 * The double nearest to the Decimal128 at `at`, the even one of two. A quotient or product of two exact doubles is
 * rounded once, so it is that double. JavaScript rounds all others.
 */
export function nearestDouble(at: usize): f64 {
  const digits = load<u64>(at);
  const high = load<u64>(at, 8);
  const exponent = exponentOf(high);
  if ((high & 0x1ffffffffffff) != 0 || digits > LARGEST_EXACT || abs(exponent) > 22) return hostDouble(at);
  const power = load<f64>(POWERS + (<usize>abs(exponent) << 3));
  const size = exponent < 0 ? <f64>digits / power : <f64>digits * power;
  return high >> 63 ? -size : size;
}

/** Whether the Decimal128 at `at` is NaN, infinite or so near to a double that it does not become infinite. */
export function hasDouble(at: usize): bool {
  const high = load<u64>(at, 8);
  return exponentOf(high) <= SAFE_EXPONENT || isNoNumber(high) || abs(hostDouble(at)) < Infinity;
}

/** What toScale found: an integer of 128 bits in two's complement. */
export let scaledLow: u64 = 0;
export let scaledHigh: u64 = 0;

/** Finds the value times 10^scale. False: it is no integer or decimal, or the result no integer of at most 38 digits. */
export function toScale(type: i32, at: usize, scale: i32): bool {
  let isNegative: bool = false;
  let shift = scale;
  let low: u64 = 0;
  let high: u64 = 0;
  if (type == DECIMAL) {
    const top = load<u64>(at, 8);
    if (isNoNumber(top)) return false;
    isNegative = top >> 63 != 0;
    shift += exponentOf(top);
    if (((top >> 61) & 3) != 3) { // otherwise the digits are too many, which means 0
      low = load<u64>(at);
      high = top & 0x1ffffffffffff;
    }
  } else {
    let value: i64 = 0;
    if (type == INT32) value = load<i32>(at);
    else if (type == INT64) value = load<i64>(at);
    else if (type == DOUBLE && isWhole(load<f64>(at))) value = <i64>load<f64>(at);
    else return false;
    isNegative = value < 0;
    low = <u64>(isNegative ? -value : value); // the smallest i64 stays itself, which is the right u64
  }
  if ((low | high) == 0) shift = 0;
  for (; shift > 0; shift--) {
    // 10^37 and more would have more than 38 digits.
    if (high > 0x0785ee10d5da46d9 || (high == 0x0785ee10d5da46d9 && low >= 0x00f436a000000000)) return false;
    const first = (low & 0xffffffff) * 10;
    const second = (low >> 32) * 10 + (first >> 32);
    low = (second << 32) | (first & 0xffffffff);
    high = high * 10 + (second >> 32);
  }
  for (; shift < 0; shift++) {
    const second = ((high % 10) << 32) | (low >> 32);
    const first = ((second % 10) << 32) | (low & 0xffffffff);
    if (first % 10 != 0) return false;
    high /= 10;
    low = ((second / 10) << 32) | (first / 10);
  }
  scaledLow = isNegative ? 0 - low : low;
  scaledHigh = isNegative ? ~high + <u64>(low == 0) : high;
  return true;
}

/** Whether a double is an integer that has the same JSON text. That of -0 is 0. */
// @ts-ignore: decorator
@inline export function isWhole(value: f64): bool {
  return abs(value) <= <f64>LARGEST_EXACT && floor(value) == value;
}
