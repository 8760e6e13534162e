import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { test } from 'node:test';
import { parse } from 'csv-parse/sync';
import type { Kind } from '../../src/import/kinds.ts';
import { itemToJson } from '../support/rows/item-json.ts';
import { read } from '../support/import/import-reading.ts';

const ROWS = { category: null, price: null, id: null };

/** Texts as JSON values: some are JSON, some only look like it. JSON.parse decides which. */
const JSON_TEXTS: readonly string[] = [
  ...[
    '0',
    '-0',
    '1',
    '-1',
    '12.5',
    '-0.25',
    '1e3',
    '1E3',
    '1e+3',
    '1e-3',
    '0.5e1',
    '123456789012345678',
    '1e22',
  ],
  ...[
    '',
    '+1',
    '01',
    '-01',
    '1.',
    '.5',
    '-',
    '--1',
    '1e',
    '1e+',
    '1.e1',
    '0x10',
    '1_000',
    '1,5',
    '2.e3',
    '0.3.4',
  ],
  ...[
    'NaN',
    'Infinity',
    '-Infinity',
    'true',
    'false',
    'null',
    'True',
    'nul',
    'nulll',
    'truefalse',
    'undefined',
  ],
  ...[
    '""',
    '"a"',
    '"\\""',
    '"\\\\"',
    '"\\/"',
    '"\\b\\f\\n\\r\\t"',
    '"\\u0041"',
    '"\\u00e9"',
    '"\\ud834\\udd1e"',
  ],
  ...['"é𝄞\u2028"', '"\u007f"', '"\ufeff"', '"\\u2028"', '"a\\u0000b"', '"\\uFFFF"'],
  ...[
    '"',
    "'a'",
    '"\\x41"',
    '"\\u12"',
    '"\\u00G0"',
    '"\\u"',
    '"\\"',
    '"a',
    'a"',
    '"\t"',
    '"\u0001"',
    '"\\a"',
    '"\\U0041"',
  ],
  ...['[]', '[ ]', '[1]', '[1,2]', '[[]]', '[[[[]]]]', '[null,1,"a",{}]', '[1 ,2 ]', '[\t1\t]'],
  ...['[', ']', '[1', '[1,]', '[,1]', '[1,,2]', '[1 2]', '[1;2]', '[1}', '[1]]', '[""', '[a]', '[1]x'],
  ...[
    '{}',
    '{ }',
    '{"a":1}',
    '{"a":1,"b":[]}',
    '{"":1}',
    '{"a":{"b":{"c":null}}}',
    '{"é":1}',
    '{"\\u0061\\n":1}',
  ],
  ...[
    '{',
    '}',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,"a":1}',
    '{a:1}',
    "{'a':1}",
    '{"a" 1}',
    '{"a"::1}',
    '{"a":1 "b":2}',
  ],
  ...['{1:2}', '{"a":1]', '{"a":1}}', '{"a":/**/1}', '{"a":1}//', '[1]#', '{null:1}', '{"a",1}'],
  ...[' 1 ', '\t[]\r', '\u00a01', '1\u000b', '\ufeff1', '1 1', '"a" "b"'],
];

test('A value is read where JSON.parse reads it, as the same value, and is a bad row elsewhere', async () => {
  let good = 0;
  for (const text of JSON_TEXTS) {
    const line = `{"_id":1,"v":${text}}`;
    const { documents, bad } = await read(line, 'ndjson', { columns: ROWS });
    let expected: unknown;
    try {
      expected = JSON.parse(line);
    } catch {
      assert.deepEqual(documents, [], line);
      assert.match(bad.join(), /^1: the line is not valid JSON at character \d+: expected .+, got /, line);
      continue;
    }
    assert.deepEqual(bad, [], line);
    const { id, ...row } = JSON.parse(itemToJson(documents[0] ?? assert.fail(line))) as { id: number };
    assert.deepEqual({ _id: id, ...row }, JSON.parse(JSON.stringify(expected)), line); // no -0
    good++;
  }
  assert.ok(good > 40 && good < JSON_TEXTS.length - 40, `${good} good values`);
});

test('Bytes that are not UTF-8 are bad rows, in texts, in names and between values', async () => {
  const broken = [[0xff], [0xc0, 0x80], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]];
  for (const bytes of broken)
    for (const [before, behind] of [
      ['{"_id":1,"v":"', '"}'],
      ['{"_id":1,"', '":1}'],
      ['{"_id":1', '}'],
    ]) {
      const line = Buffer.concat([Buffer.from(before ?? ''), Buffer.from(bytes), Buffer.from(behind ?? '')]);
      assert.equal(isUtf8(line), false);
      const { bad } = await read(line, 'ndjson', { columns: ROWS });
      assert.deepEqual(bad, ['1: the row is not valid UTF-8']);
    }
});

/** CSV files of the kinds that readers differ in. */
const CSV_FILES: readonly string[] = [
  'a,b,c\n1,2,3\n',
  'a,b,c\r\n1,2,3\r\n',
  'a,b,c\r1,2,3\r',
  'a,b,c\n1,2,3',
  'a,b\n"x, y",z\n',
  'a,b\n"say ""hi""",""""\n',
  'a,b\n"two\nlines",1\n"two\r\nlines",2\n',
  'a,b\n"",""\n,\n',
  'a,b\n"{""x"": ""y""}",1\n',
  'a,b\n é , 字 \n𝄞,\n',
  '"a ""b""","c,d"\n1,2\n',
  'a,b\n\n1,2\n\n\n3,4\n\n',
  'a\n1\n2\n',
  'a,b\n" x ", y\n',
  'a,b\n\t,"\t"\n',
  'a,b\n"\n\n",1\n',
];

test('CSV of every kind has the cells that csv-parse finds', async () => {
  for (const content of CSV_FILES) {
    const [header = [], ...records] = parse(content, {
      record_delimiter: ['\r\n', '\n', '\r'],
      skip_empty_lines: true,
      cast: (cell, { quoting }) => (!quoting && cell === '' ? null : cell),
    }) as unknown as (string | null)[][];
    const types = new Map(header.map((name): [string, Kind] => [String(name), 'string']));
    for (const chunk of [1, 5, 65_536]) {
      const got = await read(content, 'csv', { columns: ROWS, types, chunk, isFlat: true, delimiter: ',' });
      assert.deepEqual({ bad: got.bad, error: got.error }, { bad: [], error: undefined }, content);
      const rows = got.items.map((item) =>
        Object.fromEntries(Object.entries(item).filter(([name]) => name !== '_id')),
      );
      const expected = records.map((cells) =>
        Object.fromEntries(
          header.flatMap((name, n) => (cells[n] === null ? [] : [[String(name), cells[n]]])),
        ),
      );
      assert.deepEqual(rows, expected, content);
    }
  }
});
