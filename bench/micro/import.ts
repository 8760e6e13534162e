/**
 * The cost of turning a row of a file into BSON: node --import tsx bench/micro/import.ts [turns]
 *
 * Reads the same 1,000 rows of about 205 bytes of BSON in both ways: from the bytes of the text, as most rows of an
 * import are read, and the general way, which all other rows take. Both must give the same bytes.
 */
import assert from 'node:assert/strict';
import { itemsOfTable } from '../../src/import/cells.ts';
import { COMMAS } from '../../src/import/csv-parser.ts';
import { CsvScanner } from '../../src/import/direct/csv-scanner.ts';
import { JsonLines } from '../../src/import/direct/json-lines.ts';
import { FieldTypes } from '../../src/import/field-types.ts';
import { itemOfObject } from '../../src/import/item.ts';
import { parseLine } from '../../src/import/ndjson.ts';
import { SyntheticItems } from '../../src/import/synthetic.ts';
import { tableOf } from '../../src/import/table.ts';
import { BSON } from '../../src/store/bson.ts';
import { printMachine, takeTurns, type Work } from './turns.ts';

const turns = Number(process.argv[2]) || 20_000; // --micro is not a number
const ROWS = 1_000;
const COLUMNS = { category: 'category', price: 'price', id: null };
const HEADER = ['_id', 'name', 'category', 'price', 'description', 'stock', 'createdAt', 'updatedAt'];

const items = new SyntheticItems(1);
const documents = Array.from({ length: ROWS }, () => BSON.deserialize(items.next()));
const texts = documents.map((document) =>
  HEADER.map((name) => {
    const value: unknown = document[name];
    return value instanceof Date ? value.toISOString() : String(value);
  }),
);
const lines = documents.map((document, n) =>
  Buffer.from(
    JSON.stringify({
      ...document,
      _id: { $oid: texts[n]?.[0] },
      createdAt: { $date: texts[n]?.[6] },
      updatedAt: { $date: texts[n]?.[7] },
    }),
  ),
);
const records = texts.map((cells) => Buffer.from(`${cells.join()}\n`));

const jsonLines = JsonLines.under(COLUMNS) ?? assert.fail('the columns have one role each');
const types = new FieldTypes(new Map());
const table = tableOf(HEADER, COLUMNS, new Map());
const guesses = HEADER.map((name) => ({
  kind: name === 'stock' ? ('number' as const) : ('string' as const),
}));
const { general, direct } = itemsOfTable(table, guesses, false);
const scanner = new CsvScanner(HEADER.length, COMMAS, 2);

const at = <T>(values: readonly T[], turn: number): T => values[turn % ROWS] ?? assert.fail();
const scanned = (turn: number): CsvScanner => {
  scanner.begin(at(records, turn));
  assert.equal(scanner.scan(), 'record');
  return scanner;
};
const ways: Readonly<Record<string, (turn: number) => Uint8Array>> = {
  'NDJSON, from its bytes': (turn) => jsonLines.itemOf(at(lines, turn)) ?? assert.fail(),
  'NDJSON, the general way': (turn) =>
    itemOfObject(parseLine(at(lines, turn).toString(), 'the line'), COLUMNS, types),
  'CSV, from its bytes': (turn) => direct?.(scanned(turn)) ?? assert.fail(),
  'CSV, the general way without its parser': (turn) => general(at(texts, turn)),
};

for (let turn = 0; turn < ROWS; turn++) {
  const [json, generalJson, csv, generalCsv] = Object.values(ways).map((way) => Buffer.from(way(turn)));
  assert.deepEqual(json, generalJson);
  assert.deepEqual(csv, generalCsv);
}

const works: Record<string, { work: Work; expected: number }> = {};
for (const [name, way] of Object.entries(ways))
  works[name] = { work: (turn) => (way(turn).length > 150 ? 1 : 0), expected: 1 };

printMachine();
takeTurns(works, turns);
