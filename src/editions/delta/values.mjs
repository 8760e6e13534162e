/**
 * Values of columns from their JSON text. `exact` reads a text that can be made of the value again, `equal` another text of
 * a value that the column can have: 12.5 in a column of two places. Both return undefined for other texts.
 */
const READERS = {
  string: { exact: textOf, equal: none },
  boolean: { exact: booleanOf, equal: none },
  double: { exact: doubleOf, equal: (json) => doubleOf(withoutZeros(json)) },
  long: { exact: longOf, equal: (json) => longOf(withoutZeros(json)) },
  timestamp: { exact: timestampOf, equal: none },
};

const DECIMAL = /^decimal\(38,(\d+)\)$/;
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[Ee]([+-]?\d+))?$/;
const LONG = /^(?:0|-?[1-9]\d{0,18})$/;
const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z');
const DIGITS = 38;

/** The scale of a type of decimals. Undefined for other types. */
export function scaleOf(type) {
  const scale = DECIMAL.exec(type)?.[1];
  return scale === undefined ? undefined : Number(scale);
}

export function readerOf(type) {
  const scale = scaleOf(type);
  return scale === undefined ? READERS[type] : decimalReader(scale);
}

function none() {
  return undefined;
}

function textOf(json) {
  if (json[0] !== '"') return undefined;
  if (!json.includes('\\')) return json.slice(1, -1);
  const value = JSON.parse(json);
  return value.isWellFormed() && JSON.stringify(value) === json ? value : undefined;
}

function booleanOf(json) {
  if (json === 'true') return true;
  return json === 'false' ? false : undefined;
}

function doubleOf(json) {
  const value = Number(json);
  return String(value) === json ? value : undefined;
}

function longOf(json) {
  if (!LONG.test(json)) return undefined;
  const value = BigInt(json);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/** 7.00 as 7. */
function withoutZeros(json) {
  return json.includes('.') ? json.replace(/\.?0+$/, '') : json;
}

/** Microseconds. Python has no years before the first, and none after 9999. */
function timestampOf(json) {
  if (json.length !== 26) return undefined;
  const ms = Date.parse(json.slice(1, -1));
  if (!(ms >= FIRST_MS)) return undefined;
  return `"${new Date(ms).toISOString()}"` === json ? BigInt(ms) * 1000n : undefined;
}

/** The digits of a decimal as an integer. */
function decimalReader(scale) {
  const form = scale === 0 ? /^-?(?:0|[1-9]\d*)$/ : new RegExp(`^-?(?:0|[1-9]\\d*)\\.\\d{${scale}}$`);
  return {
    exact(json) {
      if (!form.test(json) || json.length > DIGITS + 3) return undefined;
      const value = BigInt(json.replace('.', ''));
      return value === 0n && json[0] === '-' ? undefined : fitting(value);
    },
    equal: (json) => scaled(json, scale),
  };
}

/** A number times 10^scale, if that is an integer of at most 38 digits. */
function scaled(json, scale) {
  const [, sign, whole, fraction = '', exponent = '0'] = NUMBER.exec(json) ?? [];
  if (whole === undefined) return undefined;
  const digits = BigInt(whole + fraction);
  if (digits === 0n) return 0n;
  const shift = scale - fraction.length + Number(exponent);
  if (Math.abs(shift) > 2 * DIGITS) return undefined;
  const power = 10n ** BigInt(Math.abs(shift));
  if (shift < 0 && digits % power !== 0n) return undefined;
  const value = shift < 0 ? digits / power : digits * power;
  return fitting(sign === '-' ? -value : value);
}

const LARGEST = 10n ** BigInt(DIGITS);

function fitting(value) {
  return value < LARGEST && value > -LARGEST ? value : undefined;
}
