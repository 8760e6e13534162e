import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { imported } from '../support/import/imported.ts';

const A = { _id: 1, tags: ['a', '}{'], lines: [{ n: 1 }] };
const B = { _id: 2, tags: [], lines: [{ n: 2 }, { n: 3 }] };
const pretty = (value: unknown) => JSON.stringify(value, null, 2);
const lines = `${JSON.stringify(A)}\n${JSON.stringify(B)}\n`;

/** Files of the same two rows, as programs write them. */
const SAME: readonly (readonly [name: string, content: string])[] = [
  ['lines.ndjson', lines],
  ['lines.json', lines],
  ['without-last-line-end.json', lines.trimEnd()],
  ['array.json', JSON.stringify([A, B])],
  ['pretty-array.json', pretty([A, B])],
  ['pretty-array.ndjson', pretty([A, B])],
  ['pretty-objects.json', `${pretty(A)}\n${pretty(B)}\n`],
  ['pretty-objects.ndjson', `\ufeff\n${pretty(A)}\n\n${pretty(B)}`],
  ['crlf.json', `${pretty(A)}\n${pretty(B)}\n`.replaceAll('\n', '\r\n')],
  ['no-blank-between.json', `${pretty(A)}${pretty(B)}`],
  ['brace-on-a-line.json', `{\n${JSON.stringify(A).slice(1)}{\n${JSON.stringify(B).slice(1)}`],
];

test('JSON has its rows as lines, as an array, or as objects over several lines', async (t) => {
  for (const [name, content] of SAME) {
    const { code, rows, said } = await imported(t, name, content);
    assert.deepEqual([code, rows], [0, [A, B]], `${name}: ${said}`);
  }
});

test('what mongoexport writes is rows with their keys', async (t) => {
  const content =
    '{"_id":{"$oid":"55f14312c7447c3da7051b26"},"name":"x","rating":5}\n' +
    '{"_id":{"$oid":"55f14312c7447c3da7051b27"},"name":"y","rating":"Not yet rated"}\n';
  for (const form of [content, `[${content.trimEnd().replace('\n', ',\n')}]\n`]) {
    const { code, rows, said } = await imported(t, 'restaurants.json', form);
    assert.equal(code, 0, said);
    assert.match(said, /^"restaurants.json" becomes the resource \/restaurants;/);
    assert.deepEqual(
      rows.map(({ _id, name, rating }) => [String(_id), name as unknown, rating as unknown]),
      [
        ['55f14312c7447c3da7051b26', 'x', 5],
        ['55f14312c7447c3da7051b27', 'y', 'Not yet rated'],
      ],
    );
  }
});

test('many objects over several lines are read across the chunks of a file, and a bad one ends the import', async (t) => {
  const many = Array.from({ length: 1_200 }, (_, n) => ({
    _id: n,
    text: `{"\\}${'x'.repeat(n % 700)}`,
    in: { n },
  }));
  const content = many.map((row) => pretty(row)).join('\n');
  const all = await imported(t, 'many.json', content);
  assert.deepEqual([all.code, all.rows], [0, many], all.said);
  const broken = await imported(t, 'many.json', content.replace('"n": 1000', '"n": x'));
  assert.deepEqual([broken.code, broken.rows], [1, many.slice(0, 1_000)], broken.said);
  assert.match(
    broken.said,
    /^sluice: the JSON is invalid in or after row 1001: at character \d+: expected a value/m,
  );
  const cut = await imported(t, 'many.json', content.slice(0, -3));
  assert.match(cut.said, /^sluice: the JSON is invalid in or after row 1200: .*, got its end$/m);
});

test('an object over several lines that has no rows in it is a row', async (t) => {
  for (const row of [
    { _id: 1, a: 1 },
    { _id: 1, tags: ['{'], a: [], b: { c: [{ d: 1 }] } },
  ]) {
    const { code, rows, said } = await imported(t, 'one.json', pretty(row));
    assert.deepEqual([code, rows], [0, [row]], said);
  }
});

const ROWS = [{ id: 1 }, { id: 2 }];
/** Objects with their rows in a member, and what writes these. */
const WRAPPED: readonly (readonly [object: object, jq: string])[] = [
  [{ value: ROWS }, '.value[]'],
  [{ statuses: ROWS, search_metadata: { count: 2 } }, '.statuses[]'],
  [{ meta: { links: [{ a: 1 }] }, ids: [1, 2], data: ROWS }, '.data[]'],
  [{ type: 'x', 'the "rows"': ROWS }, String.raw`.["the \"rows\""][]`],
  [{ ärzte: ROWS }, '.["ärzte"][]'],
  [{ padding: 'x'.repeat(50_000), data: ROWS }, '.data[]'],
];

test('an object that has its rows in a member is refused with the name of the member', async (t) => {
  for (const [object, jq] of WRAPPED)
    for (const [name, content] of [
      ['one-line.json', JSON.stringify(object)],
      ['one-line-and-its-end.json', `${JSON.stringify(object)}\n`],
      ['lines.json', pretty(object)],
      ['lines.ndjson', pretty(object)],
    ] as const) {
      const { code, rows, said } = await imported(t, name, content);
      assert.deepEqual([code, rows], [1, []], said);
      const line = `: jq -c '${jq}' FILE | sluice import - --format ndjson --into NAME`;
      assert.ok(said.includes(line), `${name}: ${said}`);
    }
});

test('a line of NDJSON is a row, whatever is in it', async (t) => {
  const { code, rows } = await imported(t, 'one.ndjson', '{"_id":1,"lines":[{"n":1}]}\n');
  assert.deepEqual([code, rows], [0, [{ _id: 1, lines: [{ n: 1 }] }]]);
});

const TABS = 'id\tname, first\n1\ta\n2\tb;c\n';

test('files of tabs are columns, and those of text have what their header row has', async (t) => {
  const rows = [
    { _id: 1, 'name, first': 'a' },
    { _id: 2, 'name, first': 'b;c' },
  ];
  for (const [name, content] of [
    ['stock.tsv', TABS],
    ['stock.TAB', TABS],
    ['stock.tsv.gz', gzipSync(TABS)],
  ] as const) {
    const outcome = await imported(t, name, content);
    assert.deepEqual([outcome.code, outcome.rows], [0, rows], outcome.said);
    assert.match(outcome.said, / becomes the resource \/stock;/);
  }
  const text = await imported(t, 'stock.txt', 'id;name\n1;a\n');
  assert.deepEqual([text.code, text.rows], [0, [{ _id: 1, name: 'a' }]], text.said);
  const one = await imported(t, 'words.tsv', 'a,b\nx\n');
  assert.deepEqual(
    one.rows.map(Object.values).map(([, word]) => word as unknown),
    ['x'],
    one.said,
  );
  const other = await imported(t, 'stock.tsv', 'id;name\n1;a\n', '--delimiter', ';');
  assert.deepEqual(other.rows, [{ _id: 1, name: 'a' }], other.said);
});

/** The beginning of a zip archive whose first entry has this name, and content without compression. */
function zipOf(name: string, content: string): Buffer {
  const header = Buffer.alloc(30);
  header.write('PK\x03\x04\x14', 'latin1');
  header.writeUInt32LE(content.length, 18);
  header.writeUInt32LE(content.length, 22);
  header.writeUInt16LE(name.length, 26);
  return Buffer.concat([header, Buffer.from(name + content)]);
}

/** Files without text, the extension that they have, what they are, and what makes rows of them. */
const OTHERS: readonly (readonly [extension: string, content: Buffer | null, is: string, by: RegExp])[] = [
  ['xlsx', zipOf('[Content_Types].xml', '<Types/>'), 'an Excel workbook', /save it as CSV UTF-8/],
  [
    'xlsm',
    zipOf('xl/workbook.xml', '<workbook/>'),
    'an Excel workbook',
    /soffice --headless --convert-to csv FILE/,
  ],
  ['xls', Buffer.from('d0cf11e0a1b11ae10000', 'hex'), 'an Excel workbook', /save it as CSV UTF-8/],
  [
    'ods',
    zipOf('mimetype', 'application/vnd.oasis.opendocument.spreadsheet'),
    'an OpenDocument spreadsheet',
    /save it as CSV UTF-8/,
  ],
  [
    'zip',
    zipOf('stock.csv', 'id\n1\n'),
    'a zip archive',
    /unzip -p FILE \| sluice import - --format csv --into NAME$/m,
  ],
  [
    'bz2',
    Buffer.from('BZh91AY&SY\x94', 'latin1'),
    'a file of bzip2',
    /bzip2 -dc FILE \| sluice import - --format csv/,
  ],
  ['xz', Buffer.from('fd377a585a000004', 'hex'), 'a file of xz', /xz -dc FILE \| sluice import -/],
  [
    'parquet',
    Buffer.from('PAR1\x15\x04', 'latin1'),
    'a Parquet file',
    /duckdb -c ".*'FILE'.*" \| .* --format ndjson/,
  ],
  ['bson', null, 'a dump of BSON', /bsondump FILE \| .* --format ndjson/],
];

test('a file that is no text is called by its name, by its extension and by its bytes', async (t) => {
  for (const [extension, content, is, by] of OTHERS) {
    const named = await imported(t, `stock.${extension.toUpperCase()}`, content ?? '');
    assert.deepEqual(
      [named.code, named.said.includes(` is ${is}, not CSV or JSON; `)],
      [2, true],
      named.said,
    );
    assert.match(named.said, by);
    for (const name of ['stock.csv', 'stock.csv.gz', 'stock.json', 'stock.ndjson'])
      if (content) {
        const bytes = name.endsWith('.gz') ? gzipSync(content) : content;
        const { code, rows, said } = await imported(t, name, bytes);
        assert.deepEqual([code, rows], [1, []], said);
        assert.ok(said.includes(`sluice: the file is ${is}, not CSV or JSON; for its rows: `), said);
        const format = name.includes('csv') ? 'csv' : name.replace('stock.', '');
        if (extension === 'zip') assert.ok(said.includes(` --format ${format} `), said);
      }
  }
  const { said } = await imported(t, 'stock.ndjson.bz2', '');
  assert.match(said, /bzip2 -dc FILE \| sluice import - --format ndjson --into NAME$/);
});

test('--format reads a file by that format, whatever its name says', async (t) => {
  const { code, rows } = await imported(
    t,
    'stock.zip',
    'id,name\n1,a\n',
    '--format',
    'csv',
    '--into',
    'stock',
  );
  assert.deepEqual([code, rows], [0, [{ _id: 1, name: 'a' }]]);
});
