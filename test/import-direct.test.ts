import assert from 'node:assert/strict';
import { test } from 'node:test';
import { itemsOfTable } from '../src/import/cells.ts';
import { headerOf, readCsv, readLines } from '../src/import/csv.ts';
import { cellsOf, COMMAS } from '../src/import/csv-parser.ts';
import { CsvRecords } from '../src/import/csv-records.ts';
import { simpleNumber } from '../src/import/direct/simple-values.ts';
import { JsonLines } from '../src/import/direct/json-lines.ts';
import { FieldTypes } from '../src/import/field-types.ts';
import { describeColumns, Guesses } from '../src/import/guess.ts';
import { itemOfObject, type Columns } from '../src/import/item.ts';
import type { Kind } from '../src/import/kinds.ts';
import { readNdjson } from '../src/import/ndjson.ts';
import { cellValue, jsonNumber } from '../src/import/numbers.ts';
import { BadRow, BrokenSource, sourceRow, type SourceRow } from '../src/import/row.ts';
import { tableOf } from '../src/import/table.ts';
import { ObjectId } from '../src/store/bson.ts';
import { COLUMNS, inChunks } from './support/import-reading.ts';
import { below, oneOf, randomFrom, type Random } from './support/random-collection.ts';
import { NAMES, randomCsv } from './support/random-csv.ts';
import { RandomLines } from './support/random-json.ts';
import { SEED } from './support/seed.ts';

const ROUNDS = process.env.LONG === '1' ? 10_000 : 25;
const LINES = 100;

const ROWS: Columns = { category: null, price: null, id: null };
const ALL_COLUMNS: readonly Columns[] = [
  COLUMNS,
  ROWS,
  { ...COLUMNS, id: '_id' },
  { ...COLUMNS, id: 'sku' },
  { ...ROWS, id: 'sku' },
  { ...COLUMNS, category: 'name', price: 'a' },
];

/** The five bytes that this process has in every ObjectId that it makes. */
const OWN_BYTES = new ObjectId().id.subarray(4, 9);

/** Rows as texts that are equal exactly when the rows are. An id that this process has made is left out. */
function shown(rows: readonly SourceRow[]): string[] {
  return rows.map((row) => {
    if ('problem' in row) return `${row.at}: ${row.problem}`;
    const item = Buffer.from(row.item);
    if (item.subarray(13, 18).equals(OWN_BYTES)) item.fill(0, 9, 21);
    return `${row.at}: ${item.toString('hex')}`;
  });
}

async function collect(rows: AsyncIterable<SourceRow>): Promise<SourceRow[]> {
  const all: SourceRow[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

test('Items that are made from the bytes of JSON lines are those of the parsed lines', async () => {
  let [direct, good] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    const random = randomFrom(SEED + round);
    const columns = ALL_COLUMNS[round % ALL_COLUMNS.length] ?? COLUMNS;
    const source = new RandomLines(random);
    const lines = Array.from({ length: LINES }, () => source.next());
    const content = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]));
    const types = new FieldTypes(new Map());
    const general = (row: unknown) => itemOfObject(row, columns, types);
    const items = JsonLines.under(columns) ?? assert.fail('the columns have one role each');
    const counted = (line: Uint8Array) => {
      const item = items.itemOf(line);
      if (item) direct++;
      return item;
    };
    const chunk = 1 + below(random, oneOf(random, [300, 10_000]));
    const got = await collect(readNdjson(inChunks(content, chunk), { general, direct: counted }));
    const expected = await collect(readNdjson(inChunks(content, chunk), { general, direct: null }));
    good += expected.filter((row) => 'item' in row).length;
    assert.deepEqual(shown(got), shown(expected), `seed ${SEED + round}`);
  }
  assert.ok(good > (ROUNDS * LINES) / 10, `${good} good rows`);
  assert.ok(direct > good / 4, `${direct} of ${good} rows were made from their bytes`);
});

test('Columns that become two fields each are left to the general way', () => {
  for (const columns of [
    { ...COLUMNS, id: 'price' },
    { ...COLUMNS, category: 'x', price: 'x' },
    { ...COLUMNS, category: 'id' },
    { ...COLUMNS, price: '_id' },
  ])
    assert.equal(JsonLines.under(columns), null);
});

test('A short number in bytes is read as the number that its text is', () => {
  const random = randomFrom(SEED);
  const characters = '0123456789012345678901234567890123456789.....--e+ ';
  for (let n = 0; n < 200_000; n++) {
    const length = below(random, 18);
    const text = Array.from({ length }, () => characters[below(random, characters.length)]).join('');
    const value = simpleNumber(Buffer.from(` ${text},`), 1, 1 + length);
    if (Number.isNaN(value)) continue;
    assert.ok(Object.is(value, Number(text)), text);
    assert.ok(Object.is(value, JSON.parse(text)), text);
    assert.ok(Object.is(value, jsonNumber(text)), text);
    assert.ok(Object.is(value, cellValue(text)), text);
  }
});

/** The rows of a CSV content as the parser alone finds them, and how the reading ended. */
async function parsedRows(
  content: Buffer,
  chunk: number,
  general: (header: readonly string[]) => ItemOfCells,
) {
  const rows: SourceRow[] = [];
  const records = new CsvRecords(COMMAS, (record) => {
    const header = headerOf(record);
    const itemOf = general(header);
    const parsed = (row: typeof record) =>
      void rows.push(sourceRow(row.line, () => itemOf(cellsOf(row, header.length))));
    return { columns: header.length, taker: { parsed } };
  });
  for await (const bytes of inChunks(content, chunk)) await records.push(bytes);
  await records.end();
  return rows;
}

type ItemOfCells = ReturnType<typeof itemsOfTable>['general'];

async function parsedGuesses(
  content: Buffer,
  chunk: number,
  underHeader: (header: readonly string[]) => Guesses,
) {
  let guesses: Guesses | undefined;
  const records = new CsvRecords(COMMAS, (record) => {
    const header = headerOf(record);
    const found = (guesses = underHeader(header));
    const parsed = (row: typeof record) => {
      try {
        found.add(cellsOf(row, header.length), row.line);
      } catch (error) {
        if (!(error instanceof BadRow)) throw error;
      }
    };
    return { columns: header.length, taker: { parsed } };
  });
  for await (const bytes of inChunks(content, chunk)) await records.push(bytes);
  await records.end();
  return guesses ?? assert.fail('there is a header');
}

/** How a random table is read. */
function randomReading(random: Random) {
  const isItem = random() < 0.6;
  const all = isItem ? NAMES : NAMES.slice(random() < 0.5 ? 0 : 3);
  const header = all.filter((_, index) => (isItem && index < 3) || random() < 0.7);
  const kinds: readonly Kind[] = ['string', 'number', 'decimal', 'date', 'boolean', 'objectid', 'json'];
  const types = new Map<string, Kind>();
  if (random() < 0.3 && header.includes('a')) types.set('a', oneOf(random, kinds));
  if (random() < 0.1 && header.includes('id'))
    types.set('id', oneOf(random, ['string', 'number', 'objectid']));
  return {
    header: header.length > 0 ? header : ['a'],
    columns: isItem ? COLUMNS : ROWS,
    types: header.length > 0 ? types : new Map<string, Kind>(),
    hasDecimalComma: random() < 0.15,
  };
}

test('Rows, kinds and faults of CSV that a scanner finds in bytes are those of the parser', async () => {
  let [scanned, all] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    const random = randomFrom(SEED + round);
    const { header, columns, types, hasDecimalComma } = randomReading(random);
    const marked = randomCsv(random, header, below(random, 60), oneOf(random, [0, 0, 0.01, 0.1, 0.4]));
    const content = marked.subarray(marked.indexOf('\ufeff') === 0 ? 3 : 0); // readRows takes the mark away
    const chunk = 1 + below(random, oneOf(random, [20, 300, 3_000]));
    const where = `seed ${SEED + round}`;
    const tables = (names: readonly string[]) => tableOf(names, columns, types);
    const guessesUnder = (names: readonly string[]) => new Guesses(tables(names), hasDecimalComma);
    const expected = await outcome(async () => {
      const kinds = (await parsedGuesses(content, chunk, guessesUnder)).take();
      const general = (names: readonly string[]) =>
        itemsOfTable(tables(names), kinds, hasDecimalComma).general;
      const rows = await parsedRows(content, chunk, general);
      return { rows, said: describeColumns(tables(header), kinds, hasDecimalComma) };
    });
    const got = await outcome(async () => {
      const found = await readLines(inChunks(content, chunk), COMMAS, false, (names) => ({
        lines: guessesUnder(names),
      }));
      const kinds = found.lines.take();
      const itemsUnder = (names: readonly string[]) => {
        const { general, direct } = itemsOfTable(tables(names), kinds, hasDecimalComma);
        return {
          general,
          direct: (record: Parameters<NonNullable<typeof direct>>[0]) => {
            scanned++;
            return direct?.(record) ?? null;
          },
        };
      };
      const rows = await collect(readCsv(inChunks(content, chunk), itemsUnder));
      return { rows, said: describeColumns(tables(header), kinds, hasDecimalComma) };
    });
    assert.deepEqual(got, expected, where);
    all += typeof expected === 'string' ? 0 : expected.rows.length;
  }
  assert.ok(all > ROUNDS * 5 && scanned > all / 10, `${scanned} of ${all} rows were found in the bytes`);

  /** What a reading found, or the message of the error that ended it. */
  async function outcome(read: () => Promise<{ rows: SourceRow[]; said: readonly string[] }>) {
    try {
      const { rows, said } = await read();
      return { said, rows: shown(rows) };
    } catch (error) {
      if (!(error instanceof BadRow || error instanceof BrokenSource)) throw error;
      return error.message;
    }
  }
});
