import { below, oneOf, type Random } from './random-collection.ts';

const ALPHABETS: Readonly<Record<string, string>> = {
  base64: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=',
  hex: '0123456789abcdef',
  digits: '0123456789',
  number: '0123456789.eE+-',
  date: '0123456789-:TZ. +',
  json: '{}[]":,$ab01nul',
  any: 'aZ09 \0\u0001%/&+é\u{1f4a9}\ud7ff\uffff"\\',
};

/** Texts of 1 to 40 characters, most of which look like base64, ObjectIds, UUIDs, numbers, dates or extended JSON. */
export function randomText(random: Random): string {
  const some = (alphabet: string, length: number) =>
    Array.from({ length }, () => oneOf(random, Array.from(alphabet))).join('');
  const of = (name: string, length: number) => some(ALPHABETS[name] ?? '', length);
  const length = 1 + below(random, 40);
  const make = oneOf<() => string>(random, [
    () => some('AEJ', 1) + of('base64', 4 * (1 + below(random, 10)) - 1), // it begins as a vector does
    () => some('EAJ', 1) + of('digits', 4 * (1 + below(random, 3)) - 1),
    () => Buffer.from(of('any', 1 + below(random, 20))).toString('base64'),
    () => of('hex', oneOf(random, [24, 24, length])),
    () => [8, 4, 4, 4, 12].map((n) => of('hex', n)).join(oneOf(random, ['-', '-', ''])),
    () => of('digits', length),
    () =>
      `${oneOf(random, ['', '-'])}${of('digits', 1 + below(random, 4))}.${of('digits', 1 + below(random, 34))}`,
    () => `${of('digits', 1)}e${oneOf(random, ['-', '+', ''])}${of('digits', 1 + below(random, 5))}`,
    () => of('number', length),
    () => `${of('digits', 4)}-0${of('digits', 1)}-1${of('digits', 1)}T00:00:00.${of('digits', 3)}Z`,
    () => of('date', length),
    () => `{"$${oneOf(random, EXTENDED)}":"${of('base64', 1 + below(random, 12))}"}`,
    () => of('json', length),
    () => oneOf(random, ['null', 'NaN', 'true', 'false', 'Infinity', '__proto__', 'constructor', '.', '..']),
    () =>
      `${oneOf(random, ['str', 'int', 'num', 'dec', 'oid', 'date', 'uuid', 'bool', 'null'])}:${of('any', 3)}`,
    () => of(oneOf(random, Object.keys(ALPHABETS)), length),
  ]);
  return make();
}

const EXTENDED = [
  'oid',
  'date',
  'numberLong',
  'numberDouble',
  'numberDecimal',
  'binary',
  'timestamp',
  'code',
  'minKey',
];
