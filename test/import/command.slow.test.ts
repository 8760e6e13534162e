import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { storeUnavailable } from '../../src/base/errors.ts';
import { IMPORT_HELP, parseImportArguments, runImport, type ImportTarget } from '../../src/import/command.ts';
import { UsageError } from '../../src/terminal/arguments.ts';
import { SAMPLE_ROWS } from '../../src/import/sample.ts';
import { ImportStore, targetOf } from '../support/import/import-store.ts';
import { Kept } from '../support/pull/pulling.ts';
import { temporaryFolder } from '../support/directory.ts';

const NEVER = new AbortController().signal;
const CSV = 'id,category,price\n1,a,1.5\n2,b,2\n';
const COLUMN_LINES = 'columns:\n  id: _id, number\n  category: string\n  price: number\n';
const BY_DEFAULT = { category: 'category', price: 'price', id: null };

/** What is written to a terminal, or to something else. */
const screen = (isTTY: boolean) => Object.assign(new Kept(), { isTTY });

interface Run {
  readonly argv: readonly string[];
  readonly store?: ImportStore;
  readonly stdin?: string | Buffer;
  readonly isTTY?: boolean;
  readonly target?: ImportTarget;
}

async function run({ argv, store = new ImportStore(), stdin = '', isTTY = false, ...more }: Run) {
  const { target = targetOf(store) } = more;
  const stderr = screen(isTTY);
  const io = {
    stdin: Readable.from([Buffer.from(stdin)]),
    stderr,
    isTTY,
    place: 'the test',
    signal: NEVER,
  };
  const code = await runImport(parseImportArguments(argv), target, io);
  return { code, store, text: String(stderr.bytes) };
}

test('The arguments give a command, with defaults for what is missing', () => {
  const columns = { category: null, price: null, id: null };
  const ofFile = { name: 'a', indexes: [], isOfFile: true };
  const items = { name: 'items', indexes: [] };
  const reading = { columns, types: new Map(), delimiter: null };
  const stored = { onConflict: 'fail', drop: 'no' };
  const file = { kind: 'file', file: 'a.csv', format: 'csv', ...reading, ...stored, into: ofFile };
  const commands: [argv: string[], command: object][] = [
    [['a.csv'], file],
    [
      ['-', '--format', 'ndjson', '--into', 'b'],
      { ...file, file: '-', format: 'ndjson', into: { ...items, name: 'b' } },
    ],
    [
      ['x/a.b.NDJSON.zst'],
      { ...file, file: 'x/a.b.NDJSON.zst', format: 'ndjson', into: { ...ofFile, name: 'a.b' } },
    ],
    [
      ['items.json'],
      {
        ...file,
        file: 'items.json',
        format: 'json',
        columns: BY_DEFAULT,
        into: { ...ofFile, name: 'items' },
      },
    ],
    [['a.csv', '--into', 'items'], { ...file, columns: BY_DEFAULT, into: items }],
    [['a.csv.gz', '--format=json'], { ...file, file: 'a.csv.gz', format: 'json' }],
    [
      '--into items --category cut --price p --id sku --on-conflict replace a.csv'.split(' '),
      { ...file, columns: { category: 'cut', price: 'p', id: 'sku' }, into: items, onConflict: 'replace' },
    ],
    [
      ['a.csv', '--type', 'a, b=c=string,price=decimal', '--delimiter', 'tab', '--drop'],
      {
        ...file,
        types: new Map([
          ['a, b=c', 'string'],
          ['price', 'decimal'],
        ]),
        delimiter: '\t',
        drop: 'unconfirmed',
      },
    ],
    [
      ['a.csv', ...'--null NA --null - --name 1=index --name 2=a=b --no-paths'.split(' ')],
      {
        ...file,
        missing: ['NA', '-'],
        isFlat: true,
        names: new Map([
          [1, 'index'],
          [2, 'a=b'],
        ]),
      },
    ],
    [
      ['a.csv', '--encoding', 'latin1', '--skip-lines', '3'],
      { ...file, encoding: 'windows-1252', skippedLines: 3 },
    ],
    [['--generate', '1000'], { kind: 'generate', count: 1_000, seed: 1, onConflict: 'skip', drop: 'no' }],
    [
      ['--generate', '5', '--seed', '0', '--on-conflict', 'fail'],
      { kind: 'generate', count: 5, seed: 0, ...stored },
    ],
    [['--sample'], { kind: 'sample', onConflict: 'skip', drop: 'no' }],
  ];
  for (const [argv, command] of commands)
    assert.deepEqual(parseImportArguments(argv), command, argv.join(' '));
  const numbers = parseImportArguments([
    'a.csv',
    '--decimal-comma',
    '--thousands',
    'space',
    '--currency',
    '€',
  ]);
  assert.equal('numbers' in numbers && numbers.numbers.example, '€1 234,56 or 1234,56');
});

test('A wrong argument is refused with what was expected and what was given', () => {
  const wrong: [argv: string[], message: RegExp][] = [
    [[], /one of FILE \(- for stdin\), --generate N and --sample; it got none of them/],
    [['a.csv', '--sample'], /it got several/],
    [['a.csv', 'b.csv'], /import takes one FILE; it also got "b\.csv"/],
    [
      ['a.dat'],
      /--format is required \(one of ndjson, json, csv\): the name "a\.dat" does not indicate a format$/,
    ],
    [['-', '--format', 'csv'], /--into NAME is required: standard input has no file name$/],
    [['a.csv', '--price', 'p'], /--price applies only to --into items/],
    [['-'], /--format is required .*: standard input has no file name$/],
    [['a.csv', '--format', 'xml'], /--format must be one of ndjson, json, csv; got "xml"/],
    [['a.csv', '--on-conflict', 'ask'], /--on-conflict must be one of skip, replace, fail; got "ask"/],
    [['a.csv', '--seed', '1'], /--seed applies only to --generate/],
    [['--generate', '5', '--format', 'csv'], /--format applies only to FILE/],
    [['a.json', '--delimiter', ';'], /--delimiter applies only to CSV files/],
    [['a.json', '--thousands', ','], /--thousands applies only to CSV files/],
    [['a.csv', '--thousands', 'x'], /--thousands takes what separates thousands: .*; got "x"/],
    [['a.csv', '--thousands', '.'], /--thousands \. needs --decimal-comma/],
    [['a.csv', '--thousands', ',', '--decimal-comma'], /--thousands , contradicts --decimal-comma/],
    [['a.csv', '--currency', '-'], /--currency takes one symbol or code, such as \$ or EUR; got "-"/],
    [['a.csv', '--encoding', 'ebcdic'], /--encoding takes an encoding .*; got "ebcdic"/],
    [['a.csv', '--skip-lines', '-1'], /--skip-lines must be an integer from 0|argument is ambiguous/],
    [['a.csv', '--yes'], /--yes applies only to --drop or --sync/],
    [['a.csv', '--append', '--drop'], /--append applies only to imports without --drop/],
    ...['%d.%m', '%d.%m.%Y.%y', '%q.%d.%m.%Y', '%d%d%m%Y', '%d.%m.%', ''].map((form): [string[], RegExp] => [
      ['a.csv', '--date-format', form],
      /--date-format takes %Y or %y, %m and %d, .*; got "/,
    ]),
    ...['yes', 'yes/', 'a/A', 'a/b/c'].map((words): [string[], RegExp] => [
      ['a.csv', '--booleans', words],
      /--booleans takes the words for true and false, such as yes\/no; got "/,
    ]),
    ...['index', '0=a', '1='].map((name): [string[], RegExp] => [
      ['a.csv', '--name', name],
      /--name takes the number of a column/,
    ]),
    [['items.csv', '--id', 'price'], /the column "price" cannot become two fields/],
    [['a.csv', '--type', 'zip'], /--type takes NAME=KIND,\.\.\. with kinds string, number, .*; got "zip"/],
    [['a.csv', '--type', ''], /with kinds .*; got ""/],
    ...['', ';;', 'é', '"', '\n'].map((name): [string[], RegExp] => [
      ['a.csv', '--delimiter', name],
      /--delimiter takes one ASCII character, or tab, and no quote; got "/,
    ]),
    [['--generate', '0'], /--generate must be an integer from 1 to 1000000000; got "0"/],
    [['--generate', '5', '--seed', '4294967296'], /--seed must be an integer from 0 to 4294967295/],
    [['--generate', '5', '--generate', '6'], /--generate is given twice/],
    [['a.csv', '--colour', 'red'], /'--colour'/],
  ];
  for (const [argv, message] of wrong) {
    assert.throws(
      () => parseImportArguments(argv),
      (error) => error instanceof UsageError && message.test(error.message),
      argv.join(' '),
    );
  }
});

test('The help lists every option', () => {
  const options =
    '--format --category --price --id --type --delimiter --decimal-comma --date-format --booleans ' +
    '--null --into --index --drop --append --yes --force --on-conflict --generate --seed --sample';
  for (const option of options.split(' ')) assert.ok(IMPORT_HELP.includes(`  ${option}`), option);
});

async function fileWith(t: TestContext, name: string, content: string | Buffer): Promise<string> {
  const path = join(await temporaryFolder(t), name);
  await writeFile(path, content);
  return path;
}

test('A file without bad rows is imported with exit code 0 and a summary', async (t) => {
  const { code, store, text } = await run({ argv: [await fileWith(t, 'items.csv.gz', gzipSync(CSV))] });
  assert.equal(code, 0);
  const named = '"items.csv.gz" goes into the resource /items; --into NAME chooses another\n';
  assert.equal(text, `${named}${COLUMN_LINES}the import finished: 2 rows read, 2 written\n`);
  assert.deepEqual(store.documents, [
    { _id: 1, category: 'a', price: 1.5 },
    { _id: 2, category: 'b', price: 2 },
  ]);
});

test('Bad rows are listed with their lines and give exit code 1, and the other rows are stored', async () => {
  const stdin = `${CSV}3,,3\n4,d,x\n2,e,5\n6,f,6\n`;
  const { code, store, text } = await run({ argv: ['-', '--into', 'items', '--format', 'csv'], stdin });
  assert.equal(code, 1);
  assert.equal(store.size, 3);
  assert.equal(
    text,
    'line 4: category is missing, expected a string\n' +
      'line 5: column "price": "x" is not a number\n' +
      'line 6: a row with its _id exists\n' +
      COLUMN_LINES +
      '1 row not written, because the keys are stored, or come twice. --sync writes the rows that differ and removes those ' +
      'that the file lacks; --on-conflict replace writes those of the source, skip keeps the stored ones\n' +
      'the import finished: 6 rows read, 3 written, 3 failed\n',
  );
});

test('Control characters in a file never reach the terminal', async () => {
  const stdin = '{"id":\u001b[31m}\n{"\u001b[2J\u009b":1}\n{"category":"\u202e","price":"\u001b[1m"}\n[\n';
  for (const format of ['ndjson', 'csv', 'json']) {
    const { text } = await run({ argv: ['-', '--into', 'items', '--format', format], stdin });
    assert.ok(!/[^\n\P{Cc}]|\p{Cf}/u.test(text), JSON.stringify(text));
  }
});

test('Ten bad rows of a kind are listed, and the others are counted with their column', async () => {
  const rows = Array.from({ length: 301 }, (_, n) => `${n},a,x${n}\n`);
  const stdin = `id,category,Price EUR\n${rows.join('')}400,,1\n401,a,2,3\n`;
  const { text } = await run({
    argv: ['-', '--into', 'items', '--format', 'csv', '--price', 'Price EUR'],
    stdin,
  });
  const lines = text.trimEnd().split('\n');
  assert.deepEqual(lines.slice(9, 14), [
    'line 11: column "Price EUR": "x9" is not a number',
    'line 303: category is missing, expected a string',
    'line 304: the row has 4 cells, but the header has 3',
    '291 more like this, of column Price EUR (the first: line 2)',
    'columns:',
  ]);
  assert.equal(lines.at(-1), 'the import finished: 303 rows read, 0 written, 303 failed');
});

test('A truncated file gives exit code 1, and the stored rows are counted', async () => {
  const stdin = '[{"id":1,"category":"a","price":1},{"id":';
  const { code, store, text } = await run({ argv: ['-', '--into', 'items', '--format', 'json'], stdin });
  assert.deepEqual([code, store.size], [1, 1]);
  assert.equal(
    text,
    'sluice: the JSON array is cut off after row 1\nthe import stopped: 1 row read, 1 written\n',
  );
});

test('A store that fails gives exit code 1, its message and the number of durable rows', async () => {
  const store = new ImportStore((_, number) => {
    if (number === 3) throw storeUnavailable(new Error('gone'));
  });
  const { code, text } = await run({ argv: ['--generate', '40000'], store });
  assert.equal(code, 1);
  assert.match(
    text,
    /^sluice: The store did not respond.*\nthe import stopped: [\d,]+ rows read, [\d,]+ written\n$/,
  );
  assert.ok(text.includes(`${store.size.toLocaleString('en-US')} written`));
});

test('Generated items and the sample can be imported twice without a failure', async () => {
  const commands: [string[], number][] = [
    [['--generate', '3000', '--seed', '9'], 3_000],
    [['--sample'], SAMPLE_ROWS],
  ];
  for (const [argv, rows] of commands) {
    const first = await run({ argv });
    assert.deepEqual([first.code, first.store.size], [0, rows]);
    const again = await run({ argv, store: first.store });
    assert.deepEqual([again.code, again.store.size], [0, rows]);
    assert.match(again.text, /, 0 written, [\d,]+ skipped \(ids already in the store\)\n$/);
  }
});

test('A terminal shows a bar with the bad rows above it', async () => {
  const stdin = '{"id":1,"category":"a","price":1}\n{}\n';
  const { text } = await run({ argv: ['-', '--into', 'items', '--format', 'ndjson'], stdin, isTTY: true });
  assert.match(text, /rows read, . written/);
  assert.match(text, /\r\u001b\[Kline 2: category is missing/);
  assert.match(text, /the import finished: 2 rows read, 1 written, 1 failed\n$/);
});
