import {
  BSONRegExp,
  Binary,
  Code,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from 'bson';

/**
 * BSON's order of values, written anew from MongoDB's documentation ("Comparison/Sort Order") for tests: it shares no
 * code with the stores. Values are classes of the bson package, strings, booleans, dates, null and plain documents.
 */
export function compareBson(a: unknown, b: unknown): number {
  const byType = rankOf(a) - rankOf(b);
  if (byType !== 0) return byType;
  if (isNumber(a)) return compareNumbers(a, b);
  if (typeof a === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
  if (typeof a === 'boolean') return Number(a) - Number(b);
  if (a instanceof Date) return a.getTime() - (b as Date).getTime();
  if (a instanceof ObjectId) return Buffer.compare(a.id, (b as ObjectId).id);
  if (a instanceof Binary) return compareBinaries(a, b as Binary);
  if (a instanceof Timestamp) return a.t - (b as Timestamp).t || a.i - (b as Timestamp).i;
  if (a instanceof BSONRegExp)
    return (
      compareBson(a.pattern, (b as BSONRegExp).pattern) || compareBson(a.options, (b as BSONRegExp).options)
    );
  if (a instanceof Code) return compareBson(a.code, (b as Code).code);
  if (a === null || a instanceof MinKey || a instanceof MaxKey) return 0;
  return compareDocuments(a as object, b as object);
}

/** The place of a value's type in the order of types. Missing values are null. */
export function rankOf(value: unknown): number {
  if (value instanceof MinKey) return 0;
  if (value === null || value === undefined) return 2;
  if (isNumber(value)) return 3;
  if (typeof value === 'string') return 4;
  if (Array.isArray(value)) return 6;
  if (value instanceof Binary) return 7;
  if (value instanceof ObjectId) return 8;
  if (typeof value === 'boolean') return 9;
  if (value instanceof Date) return 10;
  if (value instanceof Timestamp) return 11;
  if (value instanceof BSONRegExp) return 12;
  if (value instanceof Code) return 13;
  return value instanceof MaxKey ? 15 : 5;
}

export function isNaNValue(value: unknown): boolean {
  return isNumber(value) && String(value) === 'NaN';
}

function isNumber(value: unknown): boolean {
  if (value instanceof Timestamp) return false; // its class extends Long
  return [Int32, Double, Long, Decimal128].some((type) => value instanceof type);
}

function compareBinaries(a: Binary, b: Binary): number {
  return a.position - b.position || a.sub_type - b.sub_type || Buffer.compare(a.value(), b.value());
}

function compareDocuments(a: object, b: object): number {
  const [left, right] = [Object.entries(a), Object.entries(b)] as [string, unknown][][];
  for (const [n, [name, value]] of (left ?? []).entries()) {
    const other = right?.[n];
    if (!other) return 1;
    const order =
      rankOf(value) - rankOf(other[1]) || compareBson(name, other[0]) || compareBson(value, other[1]);
    if (order !== 0) return order;
  }
  return (left?.length ?? 0) - (right?.length ?? 0);
}

/** Compares exactly: as whole numbers of units of 2^-1074 or 10^-n would be, by fractions of two bigints. */
function compareNumbers(a: unknown, b: unknown): number {
  const [left, right] = [String(a), String(b)];
  if (left === 'NaN' || right === 'NaN') return Number(right === 'NaN') - Number(left === 'NaN') || 0;
  const [infinite, otherInfinite] = [infinityOf(left), infinityOf(right)];
  if (infinite !== 0 || otherInfinite !== 0) return infinite - otherInfinite;
  const [x, y] = [fractionOf(a), fractionOf(b)];
  const difference = x.above * y.below - y.above * x.below;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

function infinityOf(text: string): number {
  return /^\+?Infinity$/.test(text) ? 1 : text === '-Infinity' ? -1 : 0;
}

interface Fraction {
  readonly above: bigint;
  readonly below: bigint;
}

function fractionOf(value: unknown): Fraction {
  if (value instanceof Long) return { above: value.toBigInt(), below: 1n };
  if (value instanceof Decimal128) return fractionOfText(value.toString());
  const double = Number(value);
  let [whole, below] = [double, 1n];
  while (!Number.isInteger(whole)) [whole, below] = [whole * 2, below * 2n];
  return { above: BigInt(whole), below };
}

function fractionOfText(text: string): Fraction {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:E([+-]?\d+))?$/.exec(text) ?? [];
  const power = Number(exponent) - fraction.length;
  const digits = BigInt(sign + whole + fraction);
  return power >= 0
    ? { above: digits * 10n ** BigInt(power), below: 1n }
    : { above: digits, below: 10n ** BigInt(-power) };
}
