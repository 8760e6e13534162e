/**
 * The cost of turning a row of a file into BSON: node --import tsx bench/micro/import.ts [turns]
 *
 * Reads the same 1,000 rows of about 205 bytes of BSON from NDJSON and from CSV.
 */
import assert from 'node:assert/strict';
import { rowsOfTable } from '../../src/import/row-from-cells.ts';
import { COMMAS } from '../../src/import/csv.ts';
import { CsvScanner, type CsvRecord } from '../../src/import/csv-scanner.ts';
import { FieldTypes, jsonRows as jsonRowsOf } from '../../src/import/json-rows.ts';
import { RowWriter } from '../../src/import/row-writer.ts';
import { SyntheticItems } from '../../src/import/synthetic.ts';
import type { Reading } from '../../src/import/arguments.ts';
import { columnsUnder, guessing } from '../../src/import/column.ts';
import { BSON } from '../../src/store/values/bson.ts';
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

const jsonItem = jsonRowsOf(COLUMNS, new FieldTypes(new Map()), new RowWriter(COLUMNS));
const reading: Reading = {
  format: 'csv',
  columns: COLUMNS,
  types: new Map(),
  delimiter: ',',
};
const table = columnsUnder(HEADER, reading);
const scanner = new CsvScanner(COMMAS);

const at = <T>(values: readonly T[], turn: number): T => values[turn % ROWS] ?? assert.fail();
const scanned = (turn: number): CsvRecord => {
  scanner.begin(at(records, turn), true);
  assert.ok(scanner.next());
  return scanner;
};
const guess = guessing(table, reading);
for (let turn = 0; turn < ROWS; turn++) guess(scanned(turn));
const itemOfRecord = rowsOfTable(table, reading, new RowWriter(COLUMNS));
const ways: Readonly<Record<string, (turn: number) => Uint8Array>> = {
  NDJSON: (turn) => jsonItem(at(lines, turn)),
  CSV: (turn) => itemOfRecord(scanned(turn)),
};

const works: Record<string, { work: Work; expected: number }> = {};
for (const [name, way] of Object.entries(ways))
  works[name] = { work: (turn) => (way(turn).length > 150 ? 1 : 0), expected: 1 };

printMachine();
takeTurns(works, turns);
