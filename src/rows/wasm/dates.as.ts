// Dates as Date.prototype.toISOString prints them.
import { PAIRS, writeI64, writePadded } from "./numbers.as";

const DAY: i64 = 86400000;
/** 0000-03-01 lies this many days before 1970-01-01, and 700 cycles of 400 years before it all days are positive. */
const SHIFT: i32 = 719468 + 700 * 146097;

/** As Date.prototype.toISOString. A date beyond JavaScript's range is written as relaxed Extended JSON. */
export function writeDate(value: i64, p: usize): usize {
  if (value > 8640000000000000 || value < -8640000000000000) return writeFarDate(value, p);
  // From 1970 to 2109 a division of 32 bits is enough, which the compiler makes a multiplication.
  const day = <u64>value < 1 << 42 ? <i32>(<u32>(value >> 10) / (<u32>DAY >> 10)) : <i32>floor(<f64>value / <f64>DAY);
  store<u8>(p, 34);
  p = writeDay(<u32>(day + SHIFT), p + 1);
  let rest = <u32>(value - <i64>day * DAY);
  const hour = rest / 3600000;
  rest -= hour * 3600000;
  const minute = rest / 60000;
  rest -= minute * 60000;
  const second = rest / 1000;
  rest -= second * 1000;
  const tens = rest / 10;
  store<u16>(p, load<u16>(PAIRS + (hour << 1)));
  store<u8>(p, 58, 2);
  store<u16>(p, load<u16>(PAIRS + (minute << 1)), 3);
  store<u8>(p, 58, 5);
  store<u16>(p, load<u16>(PAIRS + (second << 1)), 6);
  store<u8>(p, 46, 8);
  store<u16>(p, load<u16>(PAIRS + (tens << 1)), 9);
  store<u8>(p, <u8>(48 + rest - tens * 10), 11);
  store<u16>(p, 0x225a, 12); // Z"
  return p + 14;
}

/** Writes a day as "2024-01-31T" (Neri, Schneider; arXiv 2102.06959): years of this calendar begin in March. */
// @ts-ignore: decorator
@inline function writeDay(shifted: u32, p: usize): usize {
  const n = 4 * shifted + 3;
  const century = n / 146097;
  const inCentury = <u64>2939745 * ((n - century * 146097) | 3);
  const dayOfYear = <u32>inCentury / 2939745 / 4;
  const days = 2141 * dayOfYear + 197913;
  const isAfter = dayOfYear >= 306; // January or February of the next year
  const month = isAfter ? (days >> 16) - 12 : days >> 16;
  const year = <i32>(100 * century + <u32>(inCentury >> 32)) - 280000 + i32(isAfter);
  if (year >= 0 && year <= 9999) {
    const hundreds = <u32>year / 100;
    store<u16>(p, load<u16>(PAIRS + (hundreds << 1)));
    store<u16>(p, load<u16>(PAIRS + ((<u32>year - hundreds * 100) << 1)), 2);
    p += 4;
  } else {
    store<u8>(p, year < 0 ? 45 : 43);
    p = writePadded(<u32>abs(year), 6, p + 1);
  }
  store<u8>(p, 45);
  store<u16>(p, load<u16>(PAIRS + (month << 1)), 1);
  store<u8>(p, 45, 3);
  store<u16>(p, load<u16>(PAIRS + (((days & 0xffff) / 2141 + 1) << 1)), 4);
  store<u8>(p, 84, 6);
  return p + 7;
}

/** {"$date":{"$numberLong":"..."}} */
function writeFarDate(value: i64, p: usize): usize {
  store<u64>(p, 0x226574616424227b); // {"$date"
  store<u8>(p, 58, 8);
  store<u64>(p, 0x65626d756e24227b, 9); // {"$numbe
  store<u64>(p, 0x223a22676e6f4c72, 17); // rLong":"
  p = writeI64(value, p + 25);
  store<u32>(p, 0x7d7d22); // "}}
  return p + 3;
}
