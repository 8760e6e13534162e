// Dates as Date.prototype.toISOString prints them.
import { PAIRS, writeI64, writePadded } from "./numbers.as";

const DAY: i64 = 86400000;
/** The last printed day: its first millisecond, the length of its text, the text ("2024-01-31T"). */
const DAY_CACHE = memory.data<u64>([0x7fffffffffffffff, 0, 0, 0]);

/** As Date.prototype.toISOString. A date beyond JavaScript's range is written as relaxed Extended JSON. */
export function writeDate(value: i64, p: usize): usize {
  if (value > 8640000000000000 || value < -8640000000000000) return writeFarDate(value, p);
  let inDay = <u64>(value - load<i64>(DAY_CACHE));
  if (inDay >= <u64>DAY) {
    let day = value / DAY;
    if (day * DAY > value) day--;
    cacheDay(<i32>day);
    inDay = <u64>(value - day * DAY);
  }
  store<u8>(p, 34);
  v128.store(p, v128.load(DAY_CACHE, 16), 1);
  p += 1 + load<usize>(DAY_CACHE, 8);
  let rest = <u32>inDay;
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

/** Puts a day (counted from 1970-01-01) into the cache. The calendar is Howard Hinnant's `civil_from_days`. */
function cacheDay(day: i32): void {
  const z = day + 719468;
  const era = (z >= 0 ? z : z - 146096) / 146097;
  const dayOfEra = <u32>(z - era * 146097);
  const yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146096) / 365;
  const dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100);
  const shifted = (5 * dayOfYear + 2) / 153;
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  const year = <i32>yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const text = DAY_CACHE + 16;
  let p = text;
  if (year >= 0 && year <= 9999) p = writePadded(<u32>year, 4, p);
  else {
    store<u8>(p, year < 0 ? 45 : 43);
    p = writePadded(<u32>abs(year), 6, p + 1);
  }
  store<u8>(p, 45);
  p = writePadded(month, 2, p + 1);
  store<u8>(p, 45);
  p = writePadded(dayOfYear - (153 * shifted + 2) / 5 + 1, 2, p + 1);
  store<u8>(p++, 84);
  store<i64>(DAY_CACHE, <i64>day * DAY);
  store<usize>(DAY_CACHE, p - text, 8);
}
