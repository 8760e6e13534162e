import { Decimal128 } from '../store/bson.ts';

/**
 * Decimal128 holds 34 digits times a power of 10, whose exponent lies within these bounds (IEEE 754-2008,
 * table 3.6).
 */
const DECIMAL_DIGITS = 34;
const MIN_EXPONENT = -6176;
const MAX_EXPONENT = 6111;
/**
 * A double distinguishes all decimals of 15 digits, so texts of this length without an exponent keep all
 * their digits.
 */
const SAFE_LENGTH = 15;

/** A number that no BSON number can hold with all its digits. */
export class TooManyDigits {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Whether a double has all digits of the text it was read from. The double is compared in its shortest form
 * that reads back as the same double.
 */
export function keepsDigits(text: string, value: number): boolean {
  if (text.length <= SAFE_LENGTH && !/e/i.test(text)) return true;
  if (!Number.isFinite(value)) return false;
  const [written, kept] = [normal(text), normal(String(value))];
  return written.digits === kept.digits && written.exponent === kept.exponent;
}

/**
 * A decimal number (sign, digits, point and exponent as in JSON or CSV) with all its digits. TooManyDigits
 * when a Decimal128 cannot hold them.
 */
export function exactDecimal(text: string): Decimal128 | TooManyDigits {
  const { sign, digits, exponent } = normal(text);
  if (digits.length > DECIMAL_DIGITS || exponent < MIN_EXPONENT || exponent > MAX_EXPONENT)
    return new TooManyDigits(text);
  const isShort = text.replace(/[eE].*|\D/g, '').length <= DECIMAL_DIGITS;
  return Decimal128.fromString(isShort ? text : `${sign}${digits}E${exponent}`);
}

/**
 * The number as digits without zeros at either end, times a power of ten. Zero has no digits and the exponent
 * 0.
 */
function normal(text: string): { readonly sign: string; readonly digits: string; readonly exponent: number } {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const all = (whole + fraction).replace(/^0+/, '');
  const digits = all.replace(/0+$/, '');
  const exponent = digits === '' ? 0 : Number(power) - fraction.length + all.length - digits.length;
  return { sign, digits, exponent };
}
