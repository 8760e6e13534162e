import { reasonOf } from '../base/error-reason.ts';
import { rowsOf, type Batch } from '../store/batch.ts';
import type { Slot, Slots } from '../store/turns/slots.ts';
import { ArrowWriter } from './arrow/writer.ts';
import { Machine, whyFailed, type Spill } from './machine.ts';
import { rowPass, tablePass, type Pass } from './passes.ts';
import { nameOfRow } from './row-json.ts';
import type { RowEncoder, Transcoder } from './rows.ts';

const SMALLEST_CHUNK = 256;
const SOUND_BYTES = 64 * 1024;

/** Creates the transcoder for batches that lie in `slots`. Throws where WebAssembly cannot run. */
export function createTranscoder(slots: Slots): Transcoder {
  const machine = new Machine(slots);
  return {
    busyMs: () => machine.busyMs,
    encoder: (framing, selection) =>
      new WasmEncoder(machine, rowPass(machine, framing === 'array', selection)),
    table: (columns, safe, selection, notation) =>
      new WasmEncoder(machine, tablePass(machine, columns, safe, selection, notation)),
    arrow: (table, selection) => new ArrowWriter(machine, table, selection),
  };
}

/** Throws when a row of a batch cannot be written. Closes the encoder, which is for this alone. */
export function assertSound(encoder: RowEncoder, batch: Batch): void {
  try {
    const chunks = encoder.encode(batch, SOUND_BYTES)[Symbol.iterator]();
    while (chunks.next().done !== true) continue;
  } finally {
    encoder.close();
  }
}

class WasmEncoder implements RowEncoder {
  readonly #machine: Machine;
  readonly #pass: Pass;
  readonly #spill: Spill = { bytes: new Uint8Array() };
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
      const written = this.#run(batch, output.address, chunkBytes);
      if (written > 0) yield output.bytes(written);
    } while (!pass.finished(this.#state));
  }

  #run(batch: Batch, address: number, chunkBytes: number): number {
    const began = performance.now();
    try {
      const written = this.#pass.run(this.#state, address, address + chunkBytes);
      if (written >= 0) return written;
      throw new Error(`it ${whyFailed(written)}`);
    } catch (cause) {
      throw new Error(`${this.#rowUnderWay(batch)} cannot be decoded: ${reasonOf(cause)}`, { cause });
    } finally {
      this.#machine.busyMs += performance.now() - began;
    }
  }

  #rowUnderWay(batch: Batch): string {
    let done = this.#pass.rowsDone(this.#state);
    for (const row of rowsOf(batch)) if (done-- === 0) return nameOfRow(row);
    return nameOfRow(undefined);
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
}
