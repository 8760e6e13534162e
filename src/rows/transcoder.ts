import type { Batch } from '../store/batch.ts';
import type { Slot, Slots } from '../store/slots.ts';
import { javascriptTranscoder } from './javascript.ts';
import { storedNames } from './csv-cell.ts';
import { Machine } from './machine.ts';
import type { Spill } from './machine.ts';
import type { Framing, RowEncoder, Transcoder } from './rows.ts';
import { reasonOf } from '../thrown.ts';

const SMALLEST_CHUNK = 256;

/** The messages of faults, by the negative of the code that `run` in transcode.as.ts returns. */
const FAULTS: Readonly<Record<number, string>> = {
  1: 'is not a sound BSON document',
  2: 'is nested more than 180 levels deep',
  3: 'has no _id, or is not a sound BSON document',
};

/**
 * Creates the transcoder for batches that lie in `slots`: wasm, or the JavaScript one where wasm cannot run. `fallback`
 * is then the reason, which is to be logged once. Otherwise it is null.
 */
export function createTranscoder(slots: Slots): { transcoder: Transcoder; fallback: string | null } {
  let machine: Machine;
  try {
    machine = new Machine(slots);
  } catch (error) {
    return {
      transcoder: javascriptTranscoder,
      fallback: reasonOf(error),
    };
  }
  const transcoder: Transcoder = {
    name: 'wasm',
    encoder: (framing, fields) => new WasmEncoder(machine, rowPass(machine, framing, fields)),
    table: (columns, safe) => new WasmEncoder(machine, tablePass(machine, columns, safe)),
  };
  return { transcoder, fallback: null };
}

/** One of the module's two ways to write rows, with its state and its functions. */
interface Pass {
  /** The size of its state in bytes. */
  readonly size: number;
  open(state: Slot): void;
  readonly begin: (state: number, at: number, end: number) => void;
  readonly run: (state: number, out: number, limit: number) => number;
  readonly finished: (state: number) => number;
  readonly endHere: (state: number) => number;
  readonly rowsDone: (state: number) => number;
}

/** Rows as JSON: a State, followed by the names of the fields. */
function rowPass({ wasm }: Machine, framing: Framing, fields: readonly string[] | undefined): Pass {
  const size = wasm.STATE_SIZE.value;
  const names = fields ? nameList(fields) : new Uint8Array(0);
  return {
    size: size + names.length,
    open(state) {
      state.bytes().set(names, size);
      wasm.open(state.address, framing === 'array' ? 1 : 0, fields ? state.address + size : 0);
    },
    begin: wasm.begin,
    run: wasm.run,
    finished: wasm.finished,
    endHere: wasm.endHere,
    rowsDone: wasm.rowsDone,
  };
}

/** Rows as CSV: a Table, followed by its cells and the names of the columns. */
function tablePass({ wasm }: Machine, columns: readonly string[], safe: boolean): Pass {
  const names = storedNames(columns).map((name) => Buffer.from(name));
  const cellsAt = wasm.TABLE_SIZE.value;
  const namesAt = cellsAt + columns.length * wasm.CELL_SIZE.value;
  return {
    size: names.reduce((sum, name) => sum + name.length, namesAt) + 16, // names are read 16 bytes at a time
    open(state) {
      const view = new DataView(state.bytes().buffer, state.address, state.capacity);
      let at = namesAt;
      for (const [column, name] of names.entries()) {
        const cell = cellsAt + column * wasm.CELL_SIZE.value;
        view.setUint32(cell, state.address + at, true);
        view.setUint32(cell + 4, name.length, true);
        state.bytes().set(name, at);
        at += name.length;
      }
      wasm.tableOpen(state.address, columns.length, safe ? 1 : 0);
    },
    begin: wasm.tableBegin,
    run: wasm.tableRun,
    finished: wasm.tableFinished,
    endHere: wasm.tableEndHere,
    rowsDone: wasm.tableRowsDone,
  };
}

class WasmEncoder implements RowEncoder {
  readonly #machine: Machine;
  readonly #pass: Pass;
  readonly #spill: Spill = { bytes: new Uint8Array() };
  /** The state of the pass. */
  #slot: Slot | null;
  #batchAt = 0;

  constructor(machine: Machine, pass: Pass) {
    this.#machine = machine;
    this.#pass = pass;
    this.#slot = machine.slots.take(pass.size);
    machine.enter();
    pass.open(this.#slot);
  }

  *encode(batch: Batch, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    if (!(chunkBytes >= SMALLEST_CHUNK)) {
      throw new RangeError(`chunkBytes must be at least ${SMALLEST_CHUNK}, got ${chunkBytes}`);
    }
    const machine = this.#machine;
    const pass = this.#pass;
    const start = batch.slot.address + batch.start;
    this.#batchAt = start;
    pass.begin(this.#state, start, start + batch.length);
    do {
      const output = machine.output(chunkBytes);
      machine.spill = this.#spill;
      const written = pass.run(this.#state, output.address, output.address + chunkBytes);
      if (written < 0) throw this.#fault(written);
      if (written > 0) yield output.bytes(written);
    } while (!pass.finished(this.#state));
  }

  cut(): number {
    return this.#pass.endHere(this.#state) - this.#batchAt;
  }

  close(): void {
    if (!this.#slot) throw new TypeError('encoder closed twice');
    this.#slot.release();
    this.#slot = null;
    this.#spill.bytes = new Uint8Array();
    this.#machine.leave();
  }

  /** The address of this encoder's state in the machine's memory. */
  get #state(): number {
    if (!this.#slot) throw new TypeError('encoder used after close');
    return this.#slot.address;
  }

  #fault(code: number): Error {
    const row = this.#pass.rowsDone(this.#state) + 1;
    return new Error(`Row ${row} of the batch ${FAULTS[-code] ?? `failed with code ${code}`}`);
  }
}

/** Encodes names in the form that isAmong in bson.as.ts reads. */
function nameList(names: readonly string[]): Buffer {
  const count = Buffer.alloc(4);
  count.writeUInt32LE(names.length);
  const entries = names.map((name) => {
    const bytes = Buffer.from(name);
    const length = Buffer.alloc(2);
    length.writeUInt16LE(bytes.length);
    return Buffer.concat([length, bytes]);
  });
  return Buffer.concat([count, ...entries]);
}
