import { documentAt, endOfDocument } from '../../store/values/bson-array.ts';
import type { Batch } from '../../store/batch.ts';
import type { Slot } from '../../store/turns/slots.ts';
import { whyFailed, type Machine, type Spill } from '../machine.ts';
import { arrowState, type ArrowState } from '../passes.ts';
import { nameOfRow } from '../row-json.ts';
import type { Selection } from '../selection.ts';
import { numberOf, type Column } from './columns.ts';
import type { Part } from './messages.ts';

/** Bytes of BSON after which a record batch ends, at the end of a row. A stalled reader holds the rest of one. */
const BATCH_BYTES = 256 * 1024;
const MOST_ROWS = 16_384;
/** A record batch of many columns has fewer rows: its notes take nine bytes for each cell. */
const MOST_CELLS = 250_000;
const FULL = -4;
const UNFIT = -5;

/** How rows become a table of Arrow. */
export interface ArrowTable {
  readonly columns: readonly Column[];
  /** Whether fields without a column are kept, in `_rest`. Otherwise they were not asked for. */
  readonly keepsRest: boolean;
  /** Whether there is a column `_rest`. Without it, a value that would stand there is a fault. */
  readonly hasRest: boolean;
  /** Whether columns of JSON are plain text: some readers know no extension types. */
  readonly isJsonText: boolean;
}

/** A row has a value that fits no column, and the table has no `_rest`. */
export class UnfitRowError extends Error {
  override readonly name = 'UnfitRowError';
}

/** The body of a record batch. It is valid until the next one is made. */
export interface ArrowBody {
  readonly rows: number;
  /** How many bytes of the rows' batch are in this and all bodies before it. */
  readonly end: number;
  /** The last row: a BSON document, as a view that is valid until an await or the next step. */
  readonly last: Uint8Array;
  readonly parts: readonly Part[];
  readonly length: number;
  /** The bytes, as a view that is valid until an await or the next step of any encoder. */
  readonly bytes: () => Uint8Array;
}

export class ArrowWriter {
  readonly #machine: Machine;
  readonly #table: ArrowTable;
  readonly #state: ArrowState;
  readonly #spill: Spill = { bytes: new Uint8Array() };
  readonly #most: number;
  #slot: Slot | null;
  /** What the current body needs. */
  #held: Slot[] = [];
  #batch: Batch | null = null;
  #at = 0;

  constructor(machine: Machine, table: ArrowTable, selection: Selection) {
    this.#machine = machine;
    this.#table = table;
    const names = table.columns.map(({ name }) => name);
    const kinds = Uint8Array.from(table.columns, ({ kind }) => numberOf(kind));
    this.#state = arrowState(machine, names, kinds, table, selection);
    this.#most = 8 * Math.max(1, Math.floor(Math.min(MOST_ROWS, MOST_CELLS / names.length) / 8));
    this.#slot = machine.slots.take(this.#state.size);
    machine.enter();
    this.#state.open(this.#slot);
  }

  /** Starts with a batch of at least one row, which must stay until its last body was used. */
  begin(batch: Batch): void {
    const start = batch.slot.address + batch.start;
    this.#batch = batch;
    this.#at = 0;
    this.#machine.wasm.tableBegin(this.#address, start, start + batch.length);
  }

  /** The next body. Null when all rows of the batch are written. Throws when a row is not sound, or fits no column. */
  next(): ArrowBody | null {
    this.free();
    const batch = this.#batch;
    if (!batch || this.#at === batch.length) return null;
    const { wasm, slots } = this.#machine;
    const began = performance.now();
    const arrow = this.#address + this.#state.arrowAt;
    const notes = this.#take(wasm.notesSize(this.#most, this.#table.columns.length));
    const rows = wasm.arrowFind(arrow, notes.address, this.#most, BATCH_BYTES);
    if (rows < 0) throw this.#fault(batch, rows);
    const from = batch.slot.address + batch.start;
    const read = wasm.tableAt(this.#address) - from;
    const lastAt = new DataView(slots.memory.buffer).getUint32(notes.address + 4 * (rows - 1), true);
    const room = 2 * (read - this.#at) + 16 * rows * this.#table.columns.length;
    const { body, length } = this.#write(arrow, room);
    this.#machine.busyMs += performance.now() - began;
    this.#at = read;
    const last = batch.slot.bytes(batch.start + batch.length).subarray(lastAt - batch.slot.address);
    const begin = documentAt(last, 0);
    return {
      rows,
      end: read,
      last: last.subarray(begin, endOfDocument(last, begin)),
      parts: this.#parts(arrow),
      length,
      bytes: () => body.bytes(length),
    };
  }

  free(): void {
    for (const slot of this.#held.splice(0)) slot.release();
  }

  close(): void {
    if (!this.#slot) throw new TypeError('writer closed twice');
    this.free();
    this.#slot.release();
    this.#slot = null;
    this.#batch = null;
    this.#spill.bytes = new Uint8Array();
    this.#machine.leave();
  }

  get #address(): number {
    if (!this.#slot) throw new TypeError('writer used after close');
    return this.#slot.address;
  }

  #take(size: number): Slot {
    const slot = this.#machine.slots.take(size);
    this.#held.push(slot);
    return slot;
  }

  /** Writes the body, with twice as much room as often as it needs more. */
  #write(arrow: number, room: number): { readonly body: Slot; readonly length: number } {
    const body = this.#take(Math.max(4096, room));
    this.#machine.spill = this.#spill;
    const length = this.#machine.wasm.arrowWrite(arrow, body.address, body.address + body.capacity);
    if (length === FULL) {
      this.#held.pop();
      body.release();
      return this.#write(arrow, 2 * body.capacity);
    }
    if (length < 0) throw new Error(`A row ${whyFailed(length)}`);
    return { body, length };
  }

  #parts(arrow: number): readonly Part[] {
    const { wasm, slots } = this.#machine;
    const count = this.#table.columns.length + Number(this.#table.hasRest);
    const view = new DataView(slots.memory.buffer);
    return Array.from({ length: count }, (_, column) => {
      const part = arrow + wasm.ARROW_SIZE.value + column * wasm.PART_SIZE.value;
      const word = (n: number) => view.getUint32(part + 4 * n, true);
      const buffer = (n: number) => ({ at: word(n), length: word(n + 1) });
      return {
        nulls: word(0),
        buffers: [buffer(1), ...(word(4) > 0 ? [buffer(3)] : []), buffer(5)],
      };
    });
  }

  #fault(batch: Batch, code: number): Error {
    const at = this.#machine.wasm.tableAt(this.#address) - batch.slot.address;
    const rows = batch.slot.bytes(batch.start + batch.length).subarray(at);
    const begin = documentAt(rows, 0);
    const row = nameOfRow(rows.subarray(begin, endOfDocument(rows, begin)));
    const why = whyFailed(code);
    return code === UNFIT
      ? new UnfitRowError(`${row} ${why}`)
      : new Error(`${row} cannot be decoded: it ${why}`);
  }
}
