import { Mismatch } from '../../pull/retry.ts';
import type { RowReading } from './reading.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;

/** Counts the outermost objects of JSON text, one below the other or in an array, however it is split. */
export class JsonRows {
  #objects = 0;
  #arrays = 0;
  #isText = false;
  #isEscaped = false;

  /** The number of objects that end in this piece. */
  add(piece: Uint8Array): number {
    let [rows, objects, arrays, isText, isEscaped] = [
      ...[0, this.#objects, this.#arrays],
      ...[this.#isText, this.#isEscaped],
    ] as [number, number, number, boolean, boolean];
    for (const byte of piece)
      if (isText) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) isText = false;
      } else if (byte === QUOTE) isText = true;
      else if (byte === OPEN) objects++;
      else if (byte === CLOSE) {
        if (--objects === 0) rows++;
      } else if (byte === OPEN_ARRAY) arrays++;
      else if (byte === CLOSE_ARRAY) arrays--;
    this.#objects = objects;
    this.#arrays = arrays;
    this.#isText = isText;
    this.#isEscaped = isEscaped;
    return rows;
  }

  /** Throws Mismatched when something is still open. */
  end(): void {
    if (this.#objects !== 0 || this.#arrays !== 0 || this.#isText)
      throw new Mismatch('the JSON of the answer does not end');
  }
}

/** One array, whose bracket closes. */
export class JsonArrayRows implements RowReading {
  readonly #rows = new JsonRows();
  #first: number | null = null;

  add(piece: Buffer): number {
    this.#first ??= piece[0] ?? null;
    return this.#rows.add(piece);
  }

  end(): void {
    if (this.#first !== '['.charCodeAt(0)) throw new Mismatch('the answer is not a JSON array');
    this.#rows.end();
  }
}
