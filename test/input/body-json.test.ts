import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { AppError } from '../../src/errors.ts';
import { parseJson } from '../../src/input/body-json.ts';
import { scanJson } from '../../src/input/json-scan.ts';

const RUNS = process.env.LONG ? 1_000_000 : 10_000;

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

const MALFORMED: readonly [text: string, place: string][] = [
  ['{', 'expected a name in double quotes at line 1, column 2; got the end of the body'],
  ['{"a":1,}', 'expected a name in double quotes at line 1, column 8; got "}"'],
  ['{"a" 1}', 'expected ":" at line 1, column 6; got "1"'],
  ['{"a":\n  tru}', 'expected a value at line 2, column 3; got "t"'],
  ['[1 2]', 'expected "," or "]" at line 1, column 4; got "2"'],
  ['{"a":1}}', 'expected the end of the body at line 1, column 8; got "}"'],
  ['["é𝄞", x]', 'expected a value at line 1, column 8; got "x"'],
  ['"a\r\nb"', 'expected a character of a string, or its closing quote at line 1, column 3; got "\\r"'],
  ['{"a":"\\x"}', 'expected the rest of an escape at line 1, column 8; got "x"'],
  ['[\r\n01]', 'expected "," or "]" at line 2, column 2; got "1"'],
  [' ', 'expected a JSON value at line 1, column 2; got the end of the body'],
];

test('invalid JSON is reported with line, column and what was expected', () => {
  for (const [text, place] of MALFORMED)
    assert.deepEqual(
      refusal(text),
      { code: 'malformed-json', detail: `The request body is not JSON: ${place}.` },
      text,
    );
  assert.equal(refusal('')?.detail, 'The request body is empty; expected JSON.');
  assert.equal(refusal(Uint8Array.of(0x22, 0xff, 0x22))?.detail, 'The request body is not UTF-8.');
});

test('valid JSON that no store can keep exactly is reported with its place', () => {
  const faults = scanJson(
    '{"a":1,"a":2,"$ne":{"\\u0000":0,"x/y~z":{"__proto__":1}},"b":["\\ud800",{"_bsontype":1}],"constructor":1}',
  );
  assert.deepEqual(
    faults.map(({ pointer }) => pointer),
    ['/a', '/$ne', '/$ne/\0', '/$ne/x~1y~0z/__proto__', '/b/0', '/b/1/_bsontype'],
  );
});

test('32 levels and 1,000 values are accepted, more are refused', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  const many = (values: number) => `[${Array.from({ length: values - 1 }, () => '0').join()}]`;
  for (const text of [nested(32), many(1000)]) assert.equal(refusal(text), null);
  for (const text of [nested(33), nested(500_000), '['.repeat(1e6), many(1001), many(400_000)])
    assert.equal(refusal(text)?.code, 'invalid-body');
});

test('the scan and JSON.parse accept the same texts', () => {
  const json = fc.json({ maxDepth: 4 });
  const damaged = fc
    .tuple(
      json,
      fc.nat(),
      fc.constantFrom('', '"', '\\', '{', '}', '[', ']', ',', ':', '0', '-', '.', 'e', '\n', '\u0001', ' '),
    )
    .map(([text, at, put]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + put + text.slice(place + 1);
    });
  fc.assert(
    fc.property(fc.oneof(json, damaged, fc.string({ unit: 'binary', maxLength: 12 })), (text) => {
      let isJson = true;
      try {
        JSON.parse(text);
      } catch (error) {
        assert.ok(error instanceof SyntaxError);
        isJson = false;
      }
      let isTaken = true;
      try {
        scanJson(text);
      } catch (error) {
        assert.ok(error instanceof AppError);
        if (error.code !== 'malformed-json') return;
        isTaken = false;
      }
      assert.equal(isTaken, isJson, JSON.stringify(text));
    }),
    { numRuns: RUNS },
  );
});
