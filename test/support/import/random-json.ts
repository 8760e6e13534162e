import type { Random } from '../store/random-collection.ts';

const NAMES = [...'id _id category price name a b größe x.y No.'.split(' '), ...['', 'long name of a field']];
const ODD_NAMES = '$oid $x __proto__ _bsontype 0 12 01 a\\u0062 a\\u0000 a\\"b \\ud800 toString'.split(' ');
const NUMBERS = (
  '0 -0 0.0 -0.0 1 -1 12 1.0 1.50 0.1 0.30 -12.75 2147483647 2147483648 -2147483648 ' +
  '-2147483649 999999999999999 1234567890123456 9007199254740991 9007199254740993 ' +
  '9223372036854775807 9223372036854775808 0.30000000000000004 0.1234567890123456 ' +
  '123456789.12345678 0.12345678901234567890 1e5 1E5 1e-7 1.5e-7 1e+20 ' +
  '1.7976931348623157e308 1e400 1e-400 5e-324 1.00000000000000000 123456789012345.5 ' +
  '0.000000000000001 12345678901234567890123456789012345678901234567890'
).split(' ');
const BAD_NUMBERS = [...'01 +1 1. .5 - --1 1e 1.2.3 NaN 0x1 1_0 -.5 00'.split(' '), ...['1 2']];
const TEXTS = [
  ...(
    'x toys größe 字 𝄞 \ufffd \u2028 a\\"b \\\\ \\/ \\b\\f\\n\\r\\t \\u0041 \\u00e9 \\u5b57 ' +
    '\\ud834\\udd1e \\uD834\\uDD1E \\u0000 \\u001f 1 \ufeff \x7f'
  ).split(' '),
  ...['', 'x'.repeat(256), 'x'.repeat(257), 'é'.repeat(128), 'é'.repeat(129)],
];
const BAD_TEXTS = '\\ud834 \\udd1e \\ud834x \\ud834\\u0041 \\x \\u12 \\u12g4 \t \u0001 \\'.split(' ');
const DATES = (
  '2023-11-14T22:13:20Z 2023-11-14T22:13:20.123Z 2024-02-29T00:00:00Z 2023-02-29T00:00:00Z ' +
  '2023-02-31T00:00:00Z 2023-04-31T00:00:00Z 2023-12-31T23:59:59.999Z 2023-11-14T24:00:00Z ' +
  '2023-11-14T22:13:60Z 2023-13-14T22:13:20Z 2023-00-14T22:13:20Z 2023-11-00T22:13:20Z ' +
  '0099-11-14T22:13:20Z 0100-11-14T22:13:20Z 9999-12-31T23:59:59.999Z ' +
  '2023-11-14T22:13:20+01:00 2023-11-14T22:13:20.12Z 2023-11-14 2023-11-14t22:13:20z ' +
  '2023-1a-14T22:13:20Z'
).split(' ');
const TYPED = [
  '{"$oid":"655b0b800000000100000000"}',
  '{ "$oid" : "655B0B800000000100000abc" }',
  '{"$oid":"655b0b80000000010000000"}',
  '{"$oid":"655b0b80000000010000000g"}',
  '{"$oid":"655b0b800000000100000000","a":1}',
  '{"$oid":5}',
  ...DATES.map((date) => `{"$date":"${date}"}`),
  '{"$date": "1969-12-31T23:59:59.999Z" }',
  '{"$date":1700000000000}',
  '{"$date":{"$numberLong":"1700000000000"}}',
  '{"$date":"2023-11-14T22:13:20Z","x":1}',
  '{"$numberLong":"5"}',
  '{"$numberInt":"5"}',
  '{"$numberDouble":"1.5"}',
  '{"$numberDecimal":"1.50"}',
  '{"$binary":{"base64":"AQ==","subType":"00"}}',
  '{"$uuid":"655b0b80-0000-4001-8000-0000655b0b80"}',
  '{"$minKey":1}',
  '{"$regularExpression":{"pattern":"a","options":""}}',
  '{"$x":1}',
];
const OTHER_VALUES = ['true', 'false', 'null', 'tru', 'nul', 'undefined', "'x'", ''];

/** Random lines of NDJSON: mostly rows as programs write them, some with rare values, and some that are damaged. */
export class RandomLines {
  readonly #random: Random;
  /** The share of names, texts and values that are odd. */
  #odd = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A line without its end. */
  next(): Buffer {
    this.#odd = this.#one([0, 0, 0.02, 0.2]);
    const blank = this.#one(['', '', '', ' ', '\r', '\t']);
    const bytes = Buffer.from(`${blank}${this.#row()}${blank}`);
    return this.#random() < 0.15 ? this.#damaged(bytes) : bytes;
  }

  #row(): string {
    if (this.#isOdd(0.1))
      return this.#one(['', '[]', '5', 'null', '"x"', '{', '{}{}', '{}x', `[${this.#value(2)}]`]);
    const own = [
      `"${this.#one(['id', 'id', '_id', 'sku'])}":${this.#isOdd() ? this.#value(2) : this.#idValue()}`,
      `"category":${this.#isOdd() ? this.#value(2) : `"${this.#one(['toys', 'größe', '', '\\u00e9'])}"`}`,
      `"price":${this.#isOdd() ? this.#value(2) : this.#one(['1', '0.5', '12.75', '-0', '99999999999'])}`,
    ].filter(() => !this.#isOdd(0.3));
    const others = this.#many(5, () => this.#member(2));
    return this.#object(this.#random() < 0.7 ? [...own, ...others] : [...others, ...own.reverse()]);
  }

  #idValue(): string {
    return this.#one([
      '1',
      '"x"',
      '"é1"',
      '{"$oid":"655b0b800000000100000000"}',
      '2147483648',
      '1.5',
      '"\\u0041"',
    ]);
  }

  #member(depth: number): string {
    const space = this.#random() < 0.1 ? ' ' : '';
    return `"${this.#one(this.#isOdd() ? ODD_NAMES : NAMES.slice(this.#isOdd() ? 0 : 4))}"${space}:${space}${this.#value(depth)}`;
  }

  #value(depth: number): string {
    if (this.#isOdd(0.05)) {
      const levels = 28 + Math.floor(this.#random() * 5);
      return '['.repeat(levels) + ']'.repeat(levels);
    }
    if (this.#isOdd(0.2)) return this.#one(OTHER_VALUES);
    if (this.#isOdd(0.2)) return this.#one(BAD_NUMBERS);
    switch (Math.floor(this.#random() * (depth < 6 ? 8 : 5))) {
      case 0:
        return this.#isOdd(0.7) ? this.#one(NUMBERS) : this.#one(NUMBERS.slice(0, 16));
      case 1:
        return String(this.#randomNumber());
      case 2:
      case 3:
        return `"${this.#many(3, () => this.#one(this.#isOdd() ? BAD_TEXTS : TEXTS)).join('')}"`;
      case 4:
        return this.#one(['true', 'false', 'null']);
      case 5:
        return this.#isOdd(0.7) ? this.#one(TYPED) : this.#one(TYPED.slice(0, 2));
      case 6:
        return this.#wrapped(
          '[',
          this.#many(4, () => this.#value(depth + 1)),
          ']',
        );
      default:
        return this.#object(this.#many(4, () => this.#member(depth + 1)));
    }
  }

  /** Mostly without duplicate names. */
  #object(members: readonly string[]): string {
    const names = members.map((member) => /^"[^"]*"/.exec(member)?.[0]);
    const isKept = (at: number) => names.indexOf(names[at]) === at || this.#isOdd(0.2);
    return this.#wrapped(
      '{',
      members.filter((_, at) => isKept(at)),
      '}',
    );
  }

  #randomNumber(): number {
    const size = 10 ** Math.floor(this.#random() * 20 - 8);
    const value = (this.#random() - 0.5) * size;
    return this.#one([value, Math.trunc(value), Math.round(value * 100) / 100]);
  }

  #wrapped(open: string, members: readonly string[], close: string): string {
    const space = this.#random() < 0.1 ? this.#one([' ', '\t', '\r ']) : '';
    const comma = this.#isOdd(0.03) ? ',,' : ',';
    return `${open}${space}${members.join(`${space}${comma}${space}`)}${this.#isOdd(0.02) ? ',' : ''}${space}${close}`;
  }

  /** A byte was changed, added or removed. */
  #damaged(bytes: Buffer): Buffer {
    const at = Math.floor(this.#random() * bytes.length);
    const byte = this.#one([
      0x22, 0x5c, 0x2c, 0x3a, 0x7b, 0x7d, 0x5b, 0x5d, 0x20, 0x00, 0x80, 0xc3, 0xff, 0x30, 0x2e, 0x2d, 0x41,
    ]);
    const removed = this.#random() < 0.6 ? 1 : 0;
    const added = this.#random() < 0.7 ? [byte] : [];
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(added), bytes.subarray(at + removed)]);
  }

  #isOdd(share = 1): boolean {
    return this.#random() < this.#odd * share;
  }

  #many<T>(most: number, make: () => T): T[] {
    return Array.from({ length: Math.floor(this.#random() * (most + 1)) }, make);
  }

  #one<T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T;
  }
}
