import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRows } from '../../src/import/reading.ts';
import { formatOfName, type TextFormat } from '../../src/rows/text-files.ts';
import { BrokenSource } from '../../src/import/row.ts';
import { read, readingOf } from '../support/import/import-reading.ts';
import { eachRow } from '../support/import/each-row.ts';

const GOOD = '{"id":"g","category":"c","price":1}';
const MIXED = '{"id":"é","category":"größe","price":1.5,"n":"𝄞字"}\n\n{"id":"x",\r\n{"category":"𝄞"}\n';

test('A source gives the same rows wherever its chunks end', async () => {
  const contents: [TextFormat, Buffer][] = [
    ['ndjson', Buffer.from(`\ufeff${MIXED}`)],
    ['csv', Buffer.from('\ufeffid,category,price\r\né,"grö""ße\r\n𝄞",1.5\r\n\r\nx,y\r\n"字",b,2')],
    [
      'json',
      Buffer.from('\ufeff[{"id":"é","category":"grö\\u00dfe}","price":15e-1},\r\n"𝄞" ,{"price":true}]'),
    ],
    ['json', Buffer.from(`\ufeff  ${MIXED}`)],
  ];
  for (const [format, content] of contents) {
    const whole = await read(content, format);
    assert.equal(whole.error, undefined);
    assert.ok(whole.items.length > 0 && whole.bad.length > 0);
    for (let cut = 1; cut < content.length; cut++) {
      const { rows } = await readRows(twoPieces(content, cut), readingOf(format));
      const got: string[] = [];
      for await (const row of eachRow(rows))
        got.push('problem' in row ? `${row.at}: ${row.problem}` : 'item');
      assert.deepEqual(
        got.filter((text) => text !== 'item'),
        whole.bad,
        `${format} cut at byte ${cut}`,
      );
      assert.equal(got.length, whole.bad.length + whole.items.length);
    }
    assert.deepEqual((await read(content, format, { chunk: 1 })).items, whole.items);
  }
});

async function* twoPieces(content: Buffer, cut: number): AsyncGenerator<Buffer> {
  yield await Promise.resolve(content.subarray(0, cut));
  yield content.subarray(cut);
}

async function* longLine(before: string, bytes: number, after: string): AsyncGenerator<Buffer> {
  yield await Promise.resolve(Buffer.from(before));
  const piece = Buffer.alloc(1024 * 1024, 'x');
  for (let sent = 0; sent < bytes; sent += piece.length) yield piece;
  yield Buffer.from(after);
}

test('An NDJSON line over 16 MB is refused, and the next line is read', async () => {
  const content = longLine(`${GOOD}\n{"a":"`, 17 << 20, `"}\n${GOOD}\n`);
  const { rows } = await readRows(content, readingOf('ndjson'));
  const got: string[] = [];
  for await (const row of eachRow(rows))
    got.push('problem' in row ? `${row.at}: ${row.problem}` : `${row.at}`);
  assert.deepEqual(got, ['1', '2: the line is longer than 16 MB', '3']);
});

test('A CSV row or an array element over 16 MB ends the run', async () => {
  const contents: [TextFormat, string, RegExp][] = [
    ['csv', 'category,price\na,1\n"b', /row on line 3 is longer than 16 MB; a quote may not be closed/],
    ['json', `[${GOOD},{"a":"`, /row 2 is longer than 16 MB/],
  ];
  for (const [format, before, expected] of contents) {
    const { rows } = await readRows(longLine(before, 20 << 20, ''), readingOf(format));
    let good = 0;
    await assert.rejects(
      async () => {
        for await (const row of eachRow(rows)) good += 'item' in row ? 1 : 0;
      },
      (error) => error instanceof BrokenSource && expected.test(error.message),
    );
    assert.equal(good, 1);
  }
});

test('The file extension before that of a compression indicates the format', () => {
  const names: [string, TextFormat | null][] = [
    ['a.csv', 'csv'],
    ['dir.json/a.CSV.gz', 'csv'],
    ['a.ndjson.br', 'ndjson'],
    ['a.jsonl.zst', 'ndjson'],
    ['a.json', 'json'],
    ['a.txt', null],
    ['csv', null],
    ['-', null],
    ['a.csv.txt', null],
  ];
  for (const [name, format] of names) assert.equal(formatOfName(name), format, name);
});
