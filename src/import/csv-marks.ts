import { readFileSync } from 'node:fs';
import { asset } from '../asset.ts';

const PAGE = 65_536;
/** Where the bytes lie that are looked through, and how many at once. The module's static data would lie below. */
const BYTES_AT = PAGE;
const BYTES_AT_ONCE = PAGE;
/** Behind them, and the bytes that are read beyond them. */
const PLACES_AT = BYTES_AT + BYTES_AT_ONCE + PAGE;
const PAGES = (PLACES_AT + BYTES_AT_ONCE * Int32Array.BYTES_PER_ELEMENT) / PAGE;

interface Functions {
  readonly mark: (at: number, length: number, to: number, base: number, delimiter: number) => number;
}

let compiled: WebAssembly.Module | null = null;

/** The bytes that a table of CSV is cut at: delimiters, quotes, LF and CR. */
export class CsvMarks {
  /** Where they are, in order, and then the length of all bytes. */
  places = new Int32Array(0);
  #count = 0;
  readonly #memory = new WebAssembly.Memory({ initial: PAGES });
  readonly #bytes = new Uint8Array(this.#memory.buffer, BYTES_AT, BYTES_AT_ONCE);
  readonly #found = new Int32Array(this.#memory.buffer, PLACES_AT, BYTES_AT_ONCE);
  readonly #mark: Functions['mark'];

  constructor() {
    compiled ??= new WebAssembly.Module(readFileSync(asset('import/csv-marks.wasm')));
    const env = { memory: this.#memory };
    this.#mark = (new WebAssembly.Instance(compiled, { env }).exports as unknown as Functions).mark;
  }

  /** Finds those among bytes. */
  find(bytes: Uint8Array, delimiter: number): void {
    this.#count = 0;
    for (let from = 0; from < bytes.length; from += BYTES_AT_ONCE) {
      const some = bytes.subarray(from, from + BYTES_AT_ONCE);
      this.#bytes.set(some);
      const found = this.#mark(BYTES_AT, some.length, PLACES_AT, from, delimiter);
      this.#room(found);
      this.places.set(this.#found.subarray(0, found), this.#count);
      this.#count += found;
    }
    this.#room(1);
    this.places[this.#count] = bytes.length;
  }

  #room(more: number): void {
    const count = this.#count;
    if (count + more <= this.places.length) return;
    const before = this.places.subarray(0, count);
    this.places = new Int32Array(2 * (count + more));
    this.places.set(before);
  }
}
