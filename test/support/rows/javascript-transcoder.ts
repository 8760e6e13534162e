import { csvHeader, POINTS, storedNames, type TableNotation } from '../../../src/rows/csv-cell.ts';
import type { Framing, RowEncoder, Transcoder } from '../../../src/rows/rows.ts';
import { EVERYTHING, type Selection } from '../../../src/rows/selection.ts';
import { byteString } from '../../../src/rows/view.ts';
import { DamagedRowsError, documentAt, endOfDocument } from '../../../src/store/values/bson-array.ts';
import { BSON_TYPE } from '../../../src/store/values/bson-types.ts';
import { itemToJson, itemValues } from './item-json.ts';

/** What both transcoders write. */
export type TextTranscoder = Omit<Transcoder, 'arrow' | 'busyMs'>;

/** The oracle of the wasm transcoder: the same bytes, written in JavaScript. */
export const javascriptTranscoder: TextTranscoder = {
  encoder: (framing, selection) => encoderOf(jsonWriter(framing, selection)),
  table: (columns, safe, selection, notation) => encoderOf(csvWriter(columns, safe, selection, notation)),
};

/**
 * Returns a function that converts an item (one BSON document) to a line of CSV, see csv-cell.ts in src/rows. It throws as itemToJson
 * does. `columns` and `selection`: see Transcoder.table.
 */
export function csvWriter(
  columns: readonly string[],
  safe: boolean,
  { fields, policyView: policy }: Selection = EVERYTHING,
  notation = POINTS,
): (row: Uint8Array) => string {
  const arePaths = fields !== undefined;
  const names = storedNames(columns, arePaths).map(byteString);
  return (row) => csvLine(itemValues(row, { names, arePaths, policy }), safe, notation);
}

/** A line from the JSON texts of its values. undefined: the row has no such field. */
export function csvLine(
  values: readonly (string | undefined)[],
  safe: boolean,
  notation: TableNotation = POINTS,
): string {
  return `${values.map((json) => cell(json, safe, notation)).join(notation.separator)}\r\n`;
}

function cell(json: string | undefined, safe: boolean, notation: TableNotation): string {
  if (json === undefined || json === 'null') return '';
  if (json.startsWith('"')) return csvHeader([JSON.parse(json) as string], safe, notation).slice(0, -2);
  if (/^[{[]/.test(json)) return `"${json.replaceAll('"', '""')}"`;
  return notation.hasDecimalComma ? json.replace('.', ',') : json;
}

function jsonWriter(framing: Framing, selection: Selection | undefined): (row: Uint8Array) => string {
  let comma = '';
  return (row) => {
    const json = itemToJson(row, selection);
    if (framing === 'lines') return `${json}\n`;
    const text = comma + json;
    comma = ',';
    return text;
  };
}

/** An encoder whose chunks are rows. `write` returns a row's text. It is called once for each row, in their order. */
function encoderOf(write: (row: Uint8Array) => string): RowEncoder {
  return {
    *encode(batch) {
      const rows = batch.slot.bytes(batch.start + batch.length).subarray(batch.start);
      for (let at = 0; at < rows.length;) {
        if (rows[at] !== BSON_TYPE.document) throw new DamagedRowsError('a row is not a document');
        const document = documentAt(rows, at);
        at = endOfDocument(rows, document);
        yield Buffer.from(write(rows.subarray(document, at)));
      }
    },
    cut: () => {
      throw new TypeError('the oracle is read to its end');
    },
    close: () => undefined,
  };
}
