import { Mismatch } from '../../pull/retry.ts';
import type { RowReading } from './reading.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const LF = 0x0a;

/** Counts the records of CSV below its header, each of which must have as many cells as the header. */
export class CsvRows implements RowReading {
  #isQuoted = false;
  #cells = 1;
  #columns: number | null = null;
  #isInRecord = false;

  add(piece: Buffer): number {
    let rows = 0;
    for (const byte of piece) {
      this.#isInRecord = true;
      if (byte === QUOTE) this.#isQuoted = !this.#isQuoted;
      else if (this.#isQuoted) continue;
      else if (byte === COMMA) this.#cells++;
      else if (byte === LF) rows += this.#endRecord();
    }
    return rows;
  }

  end(): void {
    if (this.#isQuoted || this.#isInRecord) throw new Mismatch('the last record of the CSV does not end');
    if (this.#columns === null) throw new Mismatch('the CSV has no header');
  }

  #endRecord(): number {
    const cells = this.#cells;
    this.#cells = 1;
    this.#isInRecord = false;
    if (this.#columns === null) {
      this.#columns = cells;
      return 0;
    }
    if (cells !== this.#columns)
      throw new Mismatch(`a record of the CSV has ${cells} cells, and its header ${this.#columns}`);
    return 1;
  }
}
