import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { asset } from '../asset.ts';
import { documentOf } from '../store/batch.ts';
import { makeBookmark } from '../store/bookmark.ts';
import { readRow } from '../store/turns/read-row.ts';
import { BSON } from '../store/values/bson.ts';
import type { OwnedCollection } from '../store/store.ts';
import { readCsv } from './csv.ts';
import { numberOfCell } from './numbers.ts';
import type { SourceRows } from './row.ts';
import { openSource } from './source.ts';

/** The data file is beside this file in src. The build copies it beside the compiled one. */
const FILE = fileURLToPath(asset('import/sample/diamonds.csv.br'));
export const SAMPLE_ROWS = 53_940;
const BATCH_ROWS = 2_000;
/** The columns that stay fields under their own names. */
const OTHER_COLUMNS = ['carat', 'color', 'clarity', 'depth', 'table', 'x', 'y', 'z'];
const NEVER = new AbortController().signal;

/**
 * The bundled catalogue: 53,940 cut diamonds. The ids are `d00001`... by row. `category` is the cut. `name`
 * consists of carat, cut, color and clarity. The other columns keep their names, with numbers as numbers.
 */
export async function* sampleItems(): SourceRows {
  const { bytes } = await openSource(FILE, Readable.from([]), NEVER);
  let number = 0;
  yield* readCsv(bytes, (header) => {
    const at = new Map(header.map((name, index) => [name, index]));
    return (record) => diamond(++number, (name) => record.text(at.get(name) ?? -1));
  });
}

/**
 * Loads the catalogue into an empty collection, if `mayBegin`, or completes a load that was interrupted. A collection with
 * other items is left as it is. Resolves with the number of rows written, when they are durable. Nothing is overwritten,
 * so two processes may load at the same time.
 */
export async function loadSample(store: Pick<OwnedCollection, 'read' | 'insert'>, mayBegin = true) {
  const first = await firstRow(store);
  if (first === null && !mayBegin) return 0;
  // The first and the last row are written alone: one shows that a load began, the other that it is complete.
  if (first !== null && BSON.deserialize(first)._id !== idOf(1)) return 0;
  const last = await readRow(store, makeBookmark({ _id: idOf(SAMPLE_ROWS) }), NEVER);
  last?.release();
  if (last) return 0;
  const rows: Uint8Array[] = [];
  for await (const some of sampleItems()) for (const row of some) if ('item' in row) rows.push(row.item);
  if (first !== null && Buffer.compare(first, rows[0] ?? first) !== 0) return 0;
  let written = 0;
  for (let at = 0; at < rows.length;) {
    const to =
      at === 0 ? 1 : at === rows.length - 1 ? rows.length : Math.min(at + BATCH_ROWS, rows.length - 1);
    const result = await store.insert(rows.slice(at, to), 'skip');
    const [refused] = result.refused;
    if (refused) throw new Error(`the store refused a row of the bundled catalogue: ${refused.reason}`);
    written += result.written;
    at = to;
  }
  return written;
}

async function firstRow(store: Pick<OwnedCollection, 'read'>): Promise<Uint8Array | null> {
  const batch = await store.read({ sort: '_id', direction: 1 }, {}, { rows: 1, bytes: 1 }, NEVER);
  const row = batch.rows === 0 ? null : documentOf(batch).slice();
  batch.release();
  return row;
}

function diamond(number: number, cell: (name: string) => string): Uint8Array {
  const fields = new Map<string, unknown>([
    ['_id', idOf(number)],
    [
      'name',
      `${cell('carat')} ct ${cell('cut')} cut diamond, color ${cell('color')}, clarity ${cell('clarity')}`,
    ],
    ['category', cell('cut')],
    ['price', numberOfCell(cell('price'))],
  ]);
  for (const name of OTHER_COLUMNS) fields.set(name, numberOfCell(cell(name)) ?? cell(name));
  return BSON.serialize(fields);
}

function idOf(number: number): string {
  return `d${String(number).padStart(5, '0')}`;
}
