import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TextFormat } from '../../src/rows/text-files.ts';
import { read } from '../support/import/import-reading.ts';

const ROWS = { columns: { category: null, price: null, id: null } };
const NUMBER = 'a number as JSON writes it';
const STRING = 'a character of a string, or its quote';
const VALUE = 'a value';

/** Texts that are no JSON value, the characters before the fault, what was expected there, and what was found. */
const NO_VALUES: readonly (readonly [text: string, before: number, expected: string, got: string])[] = [
  ...['-01', '-1.0.', '.2e-3', '1eE2', '9.e+', '+Inf', '- 1', '1+2', '-', '012'].map(
    (text) => [text, 0, NUMBER, text.charAt(0)] as const,
  ),
  ['1 000', 2, 'a comma or }', '0'],
  ['0x1', 1, 'a comma or }', 'x'],
  ...['１', 'NaN', "'é'", '“a”', ']', '/**/1', '\\u0020"a"'].map(
    (text) => [text, 0, VALUE, text.charAt(0)] as const,
  ),
  ['nul', 3, VALUE, '}'],
  ['"\\ud800\\u"', 9, STRING, '"'],
  ['"\\u00A"', 3, STRING, '0'],
  ['"\\🌀"', 2, STRING, '🌀'],
  ['"\\', 2, STRING, '}'],
  ['"\\x00"', 2, STRING, 'x'],
  ['"a\tb"', 2, STRING, '\t'],
  ['"a\u0000b"', 2, STRING, '\u0000'],
  ['1/**/', 1, 'a comma or }', '/'],
  ['{}{}', 2, 'a comma or }', '{'],
  ['[\u0000]', 1, VALUE, '\u0000'],
  ['[\u00a0]', 1, VALUE, '\u00a0'],
  ['[1,]', 3, VALUE, ']'],
  ['[1,,2]', 3, VALUE, ','],
  ['[1:2]', 2, 'a comma or ]', ':'],
  ['[1', 2, 'a comma or ]', '}'],
  ['{"a":1,}', 7, 'a name in quotes', '}'],
  ['{key: 1}', 1, 'a name in quotes', 'k'],
  ['{"a":"b"}}', 10, 'nothing more', '}'],
  ['{"x", null}', 4, 'a colon', ','],
];

test('A text that is no JSON value makes its line bad, and the reason says where and why', async () => {
  const before = '{"_id":1,"v":';
  for (const [text, at, expected, got] of NO_VALUES) {
    const line = `${before}${text}}`;
    assert.throws(() => JSON.parse(line) as unknown, SyntaxError, line);
    const { items, bad } = await read(`{"_id":0}\n${line}\n{"_id":2}\n`, 'ndjson', ROWS);
    const shown = JSON.stringify(got);
    const place = before.length + at + 1;
    assert.deepEqual(
      [items, bad],
      [
        [{ _id: 0 }, { _id: 2 }],
        [`2: the line is not valid JSON at character ${place}: expected ${expected}, got ${shown}`],
      ],
      line,
    );
  }
});

const notJson = (line: number, at: number, expected: string, got: string) =>
  `${line}: the line is not valid JSON at character ${at}: expected ${expected}, got ${JSON.stringify(got)}`;

/** Files of lines, the ids of their good rows, and their bad rows. */
const LINES: readonly (readonly [
  ids: readonly number[],
  bad: readonly string[],
  content: string | Buffer,
])[] = [
  [[], [], ''],
  [[], [], '\ufeff'],
  [[], [], ' \n\t\r\n'],
  [[2], [notJson(1, 1, VALUE, 'x')], 'x[{"_id":1}]\n{"_id":2}'],
  [
    [],
    ['1: the line is not valid JSON at character 1: expected a value, got "\\ufeff"'],
    '\ufeff\ufeff{"_id":1}\n',
  ],
  [
    [6],
    [1, 2, 3, 4, 5].map((n) => `${n}: the row is not a JSON object`),
    '1\n"a"\nnull\n[1]\ntrue\n{"_id":6}\n',
  ],
  [
    [4],
    [
      notJson(1, 11, 'nothing more', 'x'),
      notJson(2, 10, 'nothing more', '#'),
      notJson(3, 10, 'nothing more', '{'),
    ],
    '{"_id":1} x\n{"_id":2}#\n{"_id":3}{"_id":4}\n{"_id":4}\n',
  ],
  [
    [4],
    [
      notJson(1, 10, 'nothing more', '\u0000'),
      notJson(2, 1, VALUE, '\u0000'),
      notJson(3, 9, 'a comma or }', '\u0000'),
    ],
    '{"_id":1}\u0000\n\u0000{"_id":2}\n{"_id":3\u0000}\n{"_id":4}\n',
  ],
  [[3], [notJson(1, 11, 'nothing more', '{')], '{"_id":1}\r{"_id":2}\r\n{"_id":3}\r\n'],
  [
    [1],
    ['2: the line is not valid JSON at character 16: expected a comma or ], got its end'],
    '{"_id":1}\n{"_id":2,"a":[1',
  ],
  [[2], ['1: the row is not valid UTF-8'], Buffer.from('{"_id":1,"a":"\u00e9"}\n{"_id":2}\n', 'latin1')],
  [
    [2],
    ['1: field "a": the value is nested deeper than 32 levels'],
    `{"a":${'['.repeat(100_000)}1\n{"_id":2}\n`,
  ],
  [[2], ['1: field "": the value is nested deeper than 32 levels'], `${'{"":'.repeat(50_000)}\n{"_id":2}\n`],
];

test('Bad lines are named, and the lines around them are rows', async () => {
  for (const [ids, expected, content] of LINES)
    for (const [format, chunk] of [
      ['ndjson', content.length > 1_000 ? 1_000 : 7],
      ['json', 65_536],
    ] as const) {
      const { items, bad, error } = await read(content, format, { ...ROWS, chunk });
      assert.deepEqual([items.map(({ _id }) => _id as number), bad, error], [ids, expected, undefined]);
    }
});

const invalid = (row: number, reason: string) => `the JSON is invalid in or after row ${row}: ${reason}`;
const cutAfter = (row: number) => `the JSON array is cut off after row ${row}`;
const EMPTY_CSV = 'the file is empty; a CSV file begins with a header row';

/** Files that cannot be read to their end, the number of rows before that, and the reason. */
const BROKEN: readonly (readonly [TextFormat, rows: number, error: string, content: string | Buffer])[] = [
  ['json', 0, cutAfter(0), '['],
  ['json', 0, cutAfter(0), '[{"_id":1}'],
  ['json', 0, cutAfter(0), '['.repeat(100_000)],
  ['json', 0, cutAfter(0), '[{"":'.repeat(50_000)],
  ['json', 1, cutAfter(1), '[{"_id":1},'],
  ['json', 1, cutAfter(1), '[{"_id":1},{"_id":2,"a":"b]'],
  ['json', 1, invalid(2, 'at character 1: expected a value, got its end'), '[{"_id":1},]'],
  ['json', 1, invalid(2, 'at character 1: expected a value, got its end'), '[{"_id":1},,{"_id":2}]'],
  ['json', 0, invalid(1, 'at character 1: expected a value, got its end'), '[,{"_id":1}]'],
  ['json', 0, invalid(1, 'at character 10: expected nothing more, got "{"'), '[{"_id":1}{"_id":2}]'],
  ['json', 0, invalid(1, 'at character 10: expected nothing more, got "\\u0000"'), '[{"_id":1}\u0000]'],
  ['json', 0, invalid(1, 'expected a comma or ], got "}"'), '[{"_id":1}}'],
  ['json', 1, invalid(2, 'expected nothing behind the array'), '[{"_id":1}]]'],
  ['json', 1, invalid(2, 'expected nothing behind the array'), '[{"_id":1}]\n[{"_id":2}]'],
  ['json', 1, invalid(2, `at character 10: expected ${NUMBER}, got "+"`), '[\n{"_id":1},\n{"_id":\n+2}]'],
  ['csv', 0, EMPTY_CSV, ''],
  ['csv', 0, EMPTY_CSV, '\n\r\n'],
  [
    'csv',
    0,
    'the column name "a" in the header row appears twice; --name 2=NAME gives the later one another',
    'a,a\n1,2\n',
  ],
  ['csv', 0, 'the column name "$a" in the header row begins with $', '$a,b\n1,2\n'],
  ['csv', 0, 'the column name "__proto__" in the header row is not allowed', 'a,__proto__\n1,2\n'],
  ['csv', 0, 'the header row (line 1): a quote is misplaced or not closed', 'a"b,c\n1,2\n'],
  [
    'csv',
    0,
    'the header row (line 1): a quote is not closed before the end of the file; the row extends to line 2',
    '"a\n1,2\n',
  ],
  [
    'csv',
    0,
    'the header row (line 1): the row is not valid UTF-8; --encoding windows-1252 reads a file of Windows',
    Buffer.from('\u00e9,b\ny,z\n', 'latin1'),
  ],
];

test('A file that cannot be read to its end says where, after the rows before that', async () => {
  for (const [format, rows, reason, content] of BROKEN)
    for (const chunk of [content.length > 1_000 ? 1_000 : 1, 65_536]) {
      const { items, bad, error } = await read(content, format, { ...ROWS, delimiter: ',', chunk });
      const what = content.toString().slice(0, 60);
      assert.deepEqual([items.length, bad, error?.message], [rows, [], reason], what);
    }
});
