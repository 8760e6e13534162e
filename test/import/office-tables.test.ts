import assert from 'node:assert/strict';
import { test } from 'node:test';
import { optionsThatRead, numberNotationOf } from '../../src/import/number-notation.ts';
import { imported } from '../support/import/imported.ts';
import { read } from '../support/import/import-reading.ts';

const ROWS = { category: null, price: null, id: null };

/** How offices write one number: the options, a cell, and the number. null: the cell is none by these options. */
const NUMBERS: readonly (readonly [options: string, cell: string, number: string | null])[] = [
  ['thousands ,', '1,234.50', '1234.50'],
  ['thousands ,', '-12,345,678', '-12345678'],
  ['thousands ,', '1234.5', '1234.5'],
  ['thousands ,', '1,23.5', null],
  ['thousands ,', '12,3456', null],
  ["thousands '", "1'234'567.25", '1234567.25'],
  ["thousands '", '1’234', '1234'],
  ['thousands space', '1 234 567', '1234567'],
  ['thousands space', '1\u202f234.5', '1234.5'],
  ['thousands space', '1\u00a0234', '1234'],
  ['thousands space', '1 2 3', null],
  ['comma', '1.234,50', '1234.50'],
  ['comma', '1 234,50', null],
  ['comma thousands space', '1\u202f234,50', '1234.50'],
  ['comma thousands space', '1.234,50', null],
  ["comma thousands '", "1'234,5", '1234.5'],
  ['currency $', '$12.00', '12.00'],
  ['currency $', '-$12', '-12'],
  ['currency $', '$-12', '-12'],
  ['currency $', '($12.50)', '-12.50'],
  ['currency $', '12', '12'],
  ['currency $', '€12', null],
  ['currency $', '--12', null],
  ['currency $ thousands ,', '$12,000.00', '12000.00'],
  ['comma currency €', '1.234,50 €', '1234.50'],
  ['comma currency EUR', 'EUR\u00a01.234,50', '1234.50'],
];

function notationOf(options: string) {
  const [, thousands] = /thousands (\S+)/.exec(options) ?? [];
  const [, currency] = /currency (\S+)/.exec(options) ?? [];
  return numberNotationOf({ hasDecimalComma: options.includes('comma'), thousands, currency });
}

test('thousands, currencies and decimal commas are read as the command says, and no others', () => {
  for (const [options, cell, number] of NUMBERS)
    assert.equal(notationOf(options).pointed(cell), number, `${options}: ${cell}`);
});

test('a column of numbers as offices write them is numbers by the options that the import offers', async (t) => {
  const content = 'id,amount,share,note\n1,"$1,234.50",12%,1.00E+05\n2,$99,7 %,2\n';
  const plain = await imported(t, 'stock.csv', content);
  assert.equal(plain.code, 0, plain.said);
  assert.match(
    plain.said,
    /amount: string \("\$1,234.50" on line 2 is a number with --thousands , --currency '\$'\)/,
  );
  assert.match(plain.said, /share: string \("12%" on line 2 is a percentage, and stays text: /);
  const read = await imported(t, 'stock.csv', content, '--thousands', ',', '--currency', '$');
  assert.deepEqual(read.rows, [
    { _id: 1, amount: 1234.5, share: '12%', note: 100_000 },
    { _id: 2, amount: 99, share: '7 %', note: 2 },
  ]);
});

test('a cell is offered the options that make it a number, and an odd text none', () => {
  for (const [cell, options] of [
    ['1,234.50', ['--thousands ,']],
    ['1,234', ['--thousands ,', '--decimal-comma']],
    ['1.234,50', ['--decimal-comma']],
    ["1'234.50", [`--thousands ''\\'''`]],
    ['1 234,5', ['--decimal-comma --thousands space']],
    ['12 EUR', ['--currency EUR']],
    ['(€5)', ["--currency '€'"]],
    ...['01234', '2024-01-02', '31.12.2024', 'ABC 12', '1-2', ''].map((text) => [text, []] as const),
  ] as const)
    assert.deepEqual(optionsThatRead(cell).slice(0, 2), options, cell);
});

test('cells that are no numbers are told before rows are written without them', async (t) => {
  const content = 'id,amount\n1,"$12,000.00"\n2,5\n3,n/a\n';
  const { rows, said, code } = await imported(t, 'stock.csv', content, '--type', 'amount=number');
  assert.deepEqual([code, rows], [1, [{ _id: 2, amount: 5 }]]);
  const [, first = ''] = said.split('\n');
  assert.equal(
    first,
    'column "amount" is declared as number, and 2 cells cannot be read so, such as "$12,000.00" on line 2: their rows are ' +
      `left out. What reads it: --thousands , --currency '$', or --type amount=string`,
  );
  assert.ok(said.indexOf(first) < said.indexOf('line 2: column "amount"'), said);
});

const TABLE = 'Monat;Umsatz;Anteil\nJan;5;1\nFeb;7;2\n';
const ROWS_OF_TABLE = [
  { _id: null, Monat: 'Jan', Umsatz: 5, Anteil: 1 },
  { _id: null, Monat: 'Feb', Umsatz: 7, Anteil: 2 },
];

/** Files with lines above their header row, and the lines. */
const TITLED: readonly (readonly [content: string, lines: number])[] = [
  [`Umsatzbericht 2024\n${TABLE}`, 1],
  [`Umsatzbericht 2024;;\n${TABLE}`, 1],
  [`Umsatzbericht 2024\n\nStand: heute\n${TABLE}`, 3],
  [`\ufeffUmsatzbericht 2024;;\r\n;;\r\n${TABLE.replaceAll('\n', '\r\n')}`, 2],
  [`Umsatzbericht 2024\r\r${TABLE.replaceAll('\n', '\r')}`, 2],
];

test('lines above the header row are skipped, and the import says how many there seem to be', async (t) => {
  for (const [content, lines] of TITLED) {
    const { code, said, rows } = await imported(t, 'umsatz.csv', content);
    assert.deepEqual([code, rows], [2, []], said);
    assert.match(said, /the header row has one filled cell, "Umsatzbericht 2024", and may be a title/);
    const offer = `--skip-lines ${lines} takes line ${lines + 1} for the header row ("Monat", "Umsatz", "Anteil")`;
    assert.ok(said.includes(offer), said);
    for (const chunk of [1, 7, 65_536])
      for (const isFile of [true, false]) {
        const options = { columns: ROWS, skippedLines: lines, chunk, isFile };
        const { items, bad, error } = await read(content, 'csv', options);
        assert.deepEqual([bad, error], [[], undefined]);
        assert.deepEqual(
          items.map((item) => ({ ...item, _id: null })),
          ROWS_OF_TABLE,
        );
      }
  }
  const { bad } = await read(`a\nb\n${TABLE}Mrz;1\n`, 'csv', { columns: ROWS, skippedLines: 2 });
  assert.match(bad[0] ?? '', /^6: the row has 2 cells, /);
});

test('a file of one column, and one with unnamed columns, is not taken for one with a title', async (t) => {
  const one = await imported(t, 'words.csv', 'note\nhello\nred; green\n');
  assert.deepEqual([one.code, one.rows.length], [0, 2], one.said);
  const texts = 'note\na;b\nc;d\n';
  assert.equal((await imported(t, 'words.csv', texts)).code, 2);
  const forced = await imported(t, 'words.csv', texts, '--skip-lines', '0');
  assert.deepEqual([forced.code, forced.rows.length], [0, 2], forced.said);
  const index = await imported(t, 'frame.csv', ',value\n0,5\n1,6\n');
  assert.match(index.said, /column 1 has no name in the header row; --name 1=NAME gives it one/);
  const twice = await imported(t, 'twice.csv', 'a,b,a\n1,2,3\n');
  assert.match(twice.said, /"a" in the header row appears twice; --name 3=NAME gives the later one another/);
});

test('the line sep=; names the delimiter, and is no row', async (t) => {
  for (const [line, delimiter] of [
    ['sep=;', ';'],
    ['"sep=;"', ';'],
    ['SEP=,', ','],
    ['sep=|', '|'],
    ['sep=\t', '\t'],
  ] as const) {
    const content = `${line}\r\n${['id', 'a,b;c'].join(delimiter === ',' ? ',' : delimiter).replace('a,b;c', '"a,b;c"')}\r\n1${delimiter}2\r\n`;
    const { code, rows, said } = await imported(t, 'excel.csv', content);
    assert.deepEqual([code, rows], [0, [{ _id: 1, 'a,b;c': 2 }]], `${line}: ${said}`);
  }
});

test('--encoding reads files of Windows, of older systems and of UTF-16', async (t) => {
  const text = 'id,name\n1,Müller €’\n';
  const windows = Buffer.from(text.replace('€’', '\x80\x92'), 'latin1');
  const expected = [{ _id: 1, name: 'Müller €’' }];
  const without = await imported(t, 'kunden.csv', windows);
  assert.match(without.said, /--encoding windows-1252 reads a file of Windows/);
  for (const [encoding, content] of [
    ['windows-1252', windows],
    ['utf-16le', Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['utf-16be', Buffer.from(text, 'utf16le').swap16()],
    ['utf-8', Buffer.from(text)],
  ] as const) {
    const { code, rows, said } = await imported(t, 'kunden.csv', content, '--encoding', encoding);
    assert.deepEqual([code, rows], [0, expected], said);
    const json = await read(content, 'csv', { encoding, chunk: 1, columns: ROWS });
    assert.deepEqual(json.items, expected);
  }
  const bad = await imported(t, 'kunden.csv', windows, '--encoding', 'utf-8');
  assert.match(bad.said, /^sluice: the file is not utf-8: bytes 0 or later are none of its characters$/m);
});

test('a row of sums at the end is told as what it may be', async (t) => {
  const sums = async (content: string, ...options: string[]) => {
    const { said } = await imported(t, 'stock.csv', content, ...options);
    return said.split('\n').filter((line) => line.includes('row of sums'));
  };
  assert.deepEqual(await sums('id,n\n1,5\n2,6\n,11\n'), [
    'the last row (line 4) has no key and is left out: it may be a row of sums',
  ]);
  assert.deepEqual(await sums('id,n\n,5\n1,6\n'), []);
  assert.deepEqual(await sums('Monat,n\nJan,5\nGesamt:,5\n', '--append'), [
    'the last row (line 3) has "Gesamt:" and may be a row of sums: it is stored as a row',
  ]);
  assert.deepEqual(await sums('Monat,n\nJan,5\n,5\n', '--append'), [
    'the last row (line 3) has no "Monat" and may be a row of sums: it is stored as a row',
  ]);
  assert.deepEqual(await sums('name,n\nJan,5\nTotal War,5\n'), []);
});
