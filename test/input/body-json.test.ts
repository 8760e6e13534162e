import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { AppError } from '../../src/base/errors.ts';
import { parseJson } from '../../src/input/body-json.ts';
import { pointer } from '../../src/input/json-scan.ts';

const RUNS = process.env.LONG ? 100_000 : 300;

/** The code and detail with which a text is refused. Null when it is accepted. */
function refusal(text: string | Uint8Array): { code: string; detail: string } | null {
  try {
    parseJson(Buffer.from(text));
    return null;
  } catch (error) {
    assert.ok(error instanceof AppError, String(error));
    return { code: error.code, detail: error.message };
  }
}

test('what is not JSON is refused', () => {
  for (const text of [
    '{',
    '{"a":1,}',
    '[1 2]',
    '{"a":1}}',
    '"a\nb"',
    '{"a":"\\x"}',
    '[01]',
    ' ',
    '['.repeat(1e5),
  ])
    assert.equal(refusal(text)?.code, 'malformed-json', text.slice(0, 20));
  assert.match(refusal('{"a":1,}')?.detail ?? '', /^The request body must be JSON; got: .*position 7.*\.$/);
  assert.equal(refusal('')?.detail, 'The request body is empty; expected JSON.');
  assert.equal(refusal(Uint8Array.of(0x22, 0xff, 0x22))?.detail, 'The request body is not UTF-8.');
});

test('valid JSON that no store can keep exactly is reported with its place', () => {
  const { faults } = parseJson(
    Buffer.from(
      '{"a":1,"\\u0061" :2,"$ne":{"\\u0000":0,"x/y~z":{"__proto__":1}},"b":[[],"\\ud800",{"_bsontype":1}],"constructor":1}',
    ),
  );
  assert.deepEqual(
    faults.map(({ pointer: place }) => place),
    ['/a', '/$ne', '/$ne/\0', '/$ne/x~1y~0z/__proto__', '/b/1', '/b/2/_bsontype'],
  );
});

test('32 levels and 1,000 values are accepted, more are refused', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  const many = (values: number) => `[${Array.from({ length: values - 1 }, () => '0').join()}]`;
  for (const text of [nested(32), many(1000)]) assert.equal(refusal(text), null);
  for (const text of [nested(33), nested(100_000), many(1001), many(100_000)])
    assert.equal(refusal(text)?.code, 'invalid-body');
  for (const text of ['x'.repeat(1e6), '\\n'.repeat(5e5)]) assert.equal(refusal(`"${text}"`), null);
});

test('the text of each number is found at its place', () => {
  const numbers = new Map<string, string>();
  const collect = (value: unknown, path: readonly string[]): void => {
    if (typeof value === 'number') numbers.set(pointer(path), JSON.stringify(value));
    else if (typeof value === 'object' && value !== null)
      for (const [name, one] of Object.entries(value)) collect(one, [...path, name]);
  };
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(0, 1, '\t'), (value, space) => {
      numbers.clear();
      collect(value, []);
      const found = parseJson(Buffer.from(JSON.stringify(value, null, space))).numbers;
      assert.deepEqual(new Map([...found].sort()), new Map([...numbers].sort()));
    }),
    { numRuns: RUNS },
  );
  const digits = '[9007199254740993, {"a": -1.50e+10}]';
  assert.deepEqual(
    [...parseJson(Buffer.from(digits)).numbers],
    [
      ['/0', '9007199254740993'],
      ['/1/a', '-1.50e+10'],
    ],
  );
});
