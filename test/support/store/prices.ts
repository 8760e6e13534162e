import fc from '../fast-check.ts';
import { Decimal128, Double, Int32, Long } from '../../../src/store/values/bson.ts';
import { exactDigits, shown, type Price } from './items.ts';

/**
 * Doubles whose JSON differs from their exact value: shown below it (19.99), above it (0.1), with an exact
 * value that fits into a Decimal128 (134217728.1, 2^60), and beyond the range in which doubles distinguish
 * integers. Some are shown exactly.
 */
const DOUBLES = [
  19.99,
  0.1,
  -0.1,
  134217728.1,
  -134217728.1,
  2 ** 60,
  2 ** 53,
  2 ** 53 + 2,
  -(2 ** 60),
  20.25,
  0,
  1e22,
  1e23,
];

/** Whether a Decimal128 holds these digits. It has 34. */
export function isBoundDigits(digits: string): boolean {
  return (
    digits
      .replace(/e.*$/i, '')
      .replace(/\D/g, '')
      .replace(/^0+|0+$/g, '').length <= 34
  );
}

/** Prices of all types, at values where the types differ, and as near to them as possible. */
export function nearPrice(): fc.Arbitrary<Price> {
  return fc
    .tuple(fc.constantFrom(...DOUBLES), fc.nat(8))
    .map(([value, kind]): Price => pricesNear(value)[kind] ?? new Double(value));
}

/** All of these prices, each once. */
export function nearPrices(): Price[] {
  return DOUBLES.flatMap((value) => pricesNear(value));
}

function pricesNear(value: number): Price[] {
  const double = new Double(value);
  const decimals = [exactDigits(double), shown(double)].filter(isBoundDigits);
  const half = value === 0 ? 1e-300 : Math.abs(value) * 2 ** -54;
  const between = [-half, half, half / 1e9].map((by) => beside(shown(double), by));
  return [
    double,
    new Double(next(value)),
    ...[...decimals, ...between].map((digits) => Decimal128.fromString(digits)),
    ...(Number.isInteger(value) && Math.abs(value) < 2 ** 62
      ? [-1n, 0n, 1n].map((by) => Long.fromBigInt(BigInt(value) + by))
      : []),
    ...(Number.isInteger(value) && Math.abs(value) < 2 ** 30 ? [new Int32(value)] : []),
  ];
}

/** The digits of the number plus `by`, with about 30 digits. */
function beside(digits: string, by: number): string {
  const places = 30 - Math.max(1, Math.ceil(Math.log10(Math.abs(Number(digits)) + 1)));
  const unit = 10n ** BigInt(places);
  const [mantissa = '', exponent = '0'] = digits.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const scale = places - fraction.length + Number(exponent);
  const scaled = BigInt(whole + fraction) * 10n ** BigInt(Math.max(0, scale));
  const more = BigInt(Math.round(by * 2 ** 60)) * unit;
  const step = more / 2n ** 60n;
  return `${scaled + (step === 0n ? (by < 0 ? -1n : 1n) : step)}E-${places}`;
}

function next(value: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigInt64(0, view.getBigInt64(0) + 1n);
  return view.getFloat64(0);
}
