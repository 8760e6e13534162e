import { csvHeader, storedNames } from '../../../src/rows/csv-cell.ts';
import type { Framing, RowEncoder, Transcoder } from '../../../src/rows/rows.ts';
import { EVERYTHING, type Selection } from '../../../src/rows/selection.ts';
import { byteString } from '../../../src/rows/view.ts';
import type { Batch } from '../../../src/store/batch.ts';
import { DamagedRowsError, documentAt, endOfDocument } from '../../../src/store/bson-array.ts';
import { BSON_TYPE } from '../../../src/store/bson-types.ts';
import { itemToJson, itemValues } from './item-json.ts';

/** What both transcoders write. */
export type TextTranscoder = Omit<Transcoder, 'arrow' | 'busyMs'>;

/** The oracle of the wasm transcoder: the same bytes, written in JavaScript. */
export const javascriptTranscoder: TextTranscoder = {
  encoder: (framing, selection) => new JavaScriptEncoder(jsonWriter(framing, selection)),
  table: (columns, safe, selection) => new JavaScriptEncoder(csvWriter(columns, safe, selection)),
};

/**
 * Returns a function that converts an item (one BSON document) to a line of CSV, see csv-cell.ts in src/rows. It throws as itemToJson
 * does. `columns` and `selection`: see Transcoder.table.
 */
export function csvWriter(
  columns: readonly string[],
  safe: boolean,
  { fields, policyView: policy }: Selection = EVERYTHING,
): (row: Uint8Array) => string {
  const arePaths = fields !== undefined;
  const names = storedNames(columns, arePaths).map(byteString);
  return (row) => csvLine(itemValues(row, { names, arePaths, policy }), safe);
}

/** A line from the JSON texts of its values. undefined: the row has no such field. */
export function csvLine(values: readonly (string | undefined)[], safe: boolean): string {
  return `${values.map((json) => cell(json, safe)).join(',')}\r\n`;
}

function cell(json: string | undefined, safe: boolean): string {
  if (json === undefined || json === 'null') return '';
  if (json.startsWith('"')) return csvHeader([JSON.parse(json) as string], safe).slice(0, -2);
  return /^[{[]/.test(json) ? `"${json.replaceAll('"', '""')}"` : json;
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

class JavaScriptEncoder implements RowEncoder {
  readonly #write: (row: Uint8Array) => string;
  /** Byte offsets in the batch: the end of the row under way, and where to stop. */
  #at = 0;
  #end = 0;

  /** `write` returns a row's text. It is called once for each row, in their order. */
  constructor(write: (row: Uint8Array) => string) {
    this.#write = write;
  }

  *encode(batch: Batch, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    if (!(chunkBytes >= 256)) throw new RangeError(`chunkBytes must be at least 256, got ${chunkBytes}`);
    const chunk = Buffer.allocUnsafe(chunkBytes);
    let filled = 0;
    this.#at = 0;
    this.#end = batch.length;
    while (this.#at < this.#end) {
      // Taken anew for each row, because growth of the memory between two steps detaches views.
      const rows = batch.slot.bytes().subarray(batch.start, batch.start + batch.length);
      if (rows[this.#at] !== BSON_TYPE.document) throw new DamagedRowsError('a row is not a document');
      const document = documentAt(rows, this.#at);
      this.#at = endOfDocument(rows, document);
      const row = rows.subarray(document, this.#at);
      let text = Buffer.from(this.#write(row));
      while (text.length > 0) {
        const copied = text.copy(chunk, filled);
        filled += copied;
        text = text.subarray(copied);
        if (filled < chunkBytes) continue;
        yield chunk;
        filled = 0;
      }
    }
    if (filled > 0) yield chunk.subarray(0, filled);
  }

  cut(): number {
    this.#end = this.#at;
    return this.#end;
  }

  close(): void {
    // Nothing is held.
  }
}
