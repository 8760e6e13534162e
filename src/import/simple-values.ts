const [MINUS, POINT, ZERO] = [0x2d, 0x2e, 0x30];
const [DASH, COLON, LETTER_T, LETTER_Z] = [0x2d, 0x3a, 0x54, 0x5a];
/** A double distinguishes all decimals of 15 digits, so a number of this many characters keeps all its digits. */
const SAFE_LENGTH = 15;
const POWERS = Array.from({ length: SAFE_LENGTH }, (_, power) => Number(`1e${power}`));
/** The days that a month always has beyond 28. */
const MORE_DAYS = [3, 0, 3, 2, 3, 2, 3, 3, 2, 3, 2, 3];

/**
 * The number whose text is in these bytes, when it is short and written as JSON writes it, without an exponent. NaN for
 * any other text. The result is what Number() returns: a whole number below 2^53 divided by a power of ten up to 10^22
 * is rounded once.
 */
export function simpleNumber(bytes: Uint8Array, from: number, to: number): number {
  const length = to - from;
  if (length < 1 || length > SAFE_LENGTH) return NaN;
  const isNegative = bytes[from] === MINUS;
  const first = isNegative ? from + 1 : from;
  if (bytes[first] === ZERO && first + 1 < to && bytes[first + 1] !== POINT) return NaN;
  let value = 0;
  let decimals = -1;
  for (let at = first; at < to; at++) {
    const byte = bytes[at] ?? 0;
    const digit = byte - ZERO;
    if (digit >= 0 && digit <= 9) value = value * 10 + digit;
    else if (byte === POINT && decimals < 0 && at > first) decimals = to - at - 1;
    else return NaN;
  }
  if (decimals === 0 || first === to) return NaN;
  if (decimals > 0) value /= POWERS[decimals] ?? NaN;
  return isNegative ? -value : value;
}

/**
 * The milliseconds since 1970 of a time as mongoexport writes it: 2024-12-31T23:59:59Z or 2024-12-31T23:59:59.999Z. NaN
 * for any other text, also when it may be a date.
 */
export function utcTime(bytes: Uint8Array, from: number, to: number): number {
  const hasFraction = to - from === 24;
  if ((!hasFraction && to - from !== 20) || bytes[to - 1] !== LETTER_Z) return NaN;
  if (bytes[from + 4] !== DASH || bytes[from + 7] !== DASH || bytes[from + 10] !== LETTER_T) return NaN;
  if (bytes[from + 13] !== COLON || bytes[from + 16] !== COLON) return NaN;
  if (hasFraction && bytes[from + 19] !== POINT) return NaN;
  const year = digits(bytes, from, 4);
  const month = digits(bytes, from + 5, 2) - 1;
  const day = digits(bytes, from + 8, 2);
  const hours = digits(bytes, from + 11, 2);
  const minutes = digits(bytes, from + 14, 2);
  const seconds = digits(bytes, from + 17, 2);
  const milliseconds = hasFraction ? digits(bytes, from + 20, 3) : 0;
  const isDay = day >= 1 && day <= 28 + (MORE_DAYS[month] ?? NaN);
  const isTime = hours <= 23 && minutes <= 59 && seconds <= 59;
  // Date.UTC takes years below 100 for those of the twentieth century.
  return isDay && isTime && year >= 100
    ? Date.UTC(year, month, day, hours, minutes, seconds, milliseconds)
    : NaN;
}

/** NaN when one of the characters is no digit. */
function digits(bytes: Uint8Array, from: number, count: number): number {
  let value = 0;
  for (let at = from; at < from + count; at++) {
    const digit = (bytes[at] ?? 0) - ZERO;
    value = digit >= 0 && digit <= 9 ? value * 10 + digit : NaN;
  }
  return value;
}

/** The value of a hexadecimal digit. -1 for any other character. */
export function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
