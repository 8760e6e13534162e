import fc, { anyCharacter } from '../fast-check.ts';
import { Binary, Decimal128, Double, Int32, Long, ObjectId, UUID } from '../../../src/store/values/bson.ts';
import { nearPrice } from './prices.ts';
import { ORDER } from './values.ts';

const long = (n: bigint) => Long.fromBigInt(n);
const decimal = (digits: string) => Decimal128.fromString(digits);
const uuid = (hex: string) => new UUID(Buffer.from(hex.padEnd(32, '0'), 'hex'));
const oid = (hex: string) => new ObjectId(hex.padEnd(24, '0'));

/** BSON values of all types, nested, and near each other. */
export const anyValue: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(...ORDER),
    fc.integer().map((n) => new Int32(n | 0)),
    fc.double().map((n) => new Double(n)),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => Long.fromBigInt(n)),
    fc.string({ unit: anyCharacter, maxLength: 8 }),
    fc.uint8Array({ maxLength: 20 }).map((bytes) => new Binary(bytes, bytes.length % 5)),
    fc.date({ noInvalidDate: true }),
    fc.boolean(),
    fc.dictionary(
      fc.string({ maxLength: 3 }).map((name) => name.replaceAll('\0', '')),
      tie('value'),
      { maxKeys: 3 },
    ),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
})).value;

/** Numbers at which types meet or differ, texts of which some begin like others, and ids. */
export const EDGES: readonly unknown[] = [
  ...(
    'NaN -Infinity -9.999999999999999999999999999999999E+6144 -1E+6000 -9223372036854775808.5 -9007199254740993.5 ' +
    '-9007199254740993 -9007199254740992.5 -1.500000000000000000000000000000001 -1.50 ' +
    '-1.499999999999999999999999999999999 -1E-6000 -1E-6176 -0 0E+100 1E-6176 1E-6000 10E-6001 1.1E-6000 0.1 ' +
    // as many digits of the double 0.1 as a decimal can have, and the next decimal
    '0.1000000000000000055511151231257827 0.1000000000000000055511151231257828 ' +
    '0.9999999999999999999999999999999999 1.000 1.000000000000000000000000000000001 9007199254740991.5 ' +
    '9007199254740992.5 9007199254740993 9007199254740993.00001 9223372036854775807.5 9223372036854775808 ' +
    '9223372036854775809 1E+309 1E+6000 10E+5999 Infinity'
  )
    .split(' ')
    .map(decimal),
  ...[0, 0.1, 0.30000000000000004, 1, 1.5, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 2 ** 53 + 2, 2 ** 63, Infinity]
    .concat([Number.MIN_VALUE, Number.MAX_VALUE])
    .flatMap((n) => [new Double(n), new Double(-n)]),
  new Double(NaN),
  ...[-(2 ** 31), -1, 0, 1, 2 ** 31 - 1].map((n) => new Int32(n)),
  ...[0n, 1n, 2n ** 31n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 53n + 2n].flatMap((n) => [long(n), long(-n)]),
  ...[2n ** 60n + 127n, 2n ** 60n + 128n, 2n ** 60n + 129n, 2n ** 63n - 513n, 2n ** 63n - 512n].map(long),
  ...[Long.MIN_VALUE, Long.MIN_VALUE.add(1), Long.MAX_VALUE],
  // In UTF-16 order the last but one would come behind the last.
  ...['', '\0', '\0\0', '\0\u0001', '\u0001', 'A', 'a', 'a\0', 'a\0\0', 'a\0b', 'a\u0001', 'aa', 'b', 'é'],
  ...['\uffff', '𝄞'],
  ...['00', '00ff', 'ff'].map(uuid),
  ...['00', '0000ff', 'ff'].map(oid),
];

/** Numbers of all types, near each other, texts and ids. */
export const anyId: fc.Arbitrary<unknown> = fc.oneof(
  fc.integer().map((n) => new Int32(n)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => new Double(n)),
  nearPrice(),
  fc
    .tuple(fc.bigInt({ min: -(10n ** 34n) + 1n, max: 10n ** 34n - 1n }), fc.integer({ min: -60, max: 60 }))
    .map(([digits, place]) => decimal(`${digits}E${place}`)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(long),
  fc
    .tuple(fc.integer({ min: 50, max: 62 }), fc.bigInt({ min: -2000n, max: 2000n }), fc.constantFrom(1n, -1n))
    .map(([power, near, sign]) => long(sign * 2n ** BigInt(power) + near)),
  fc
    .tuple(fc.integer({ min: 50, max: 70 }), fc.constantFrom(1, -1))
    .map(([power, sign]) => new Double(sign * 2 ** power)),
  fc.string({ unit: fc.constantFrom('\0', '\u0001', 'a', 'b', 'é', '￿', '𝄞'), maxLength: 5 }),
  fc.string({ unit: anyCharacter }),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => new UUID(bytes)),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
);
