import type { Batch } from '../store/batch.ts';
import type { Slot, Slots } from '../store/slots.ts';
import { ArrowWriter } from './arrow/writer.ts';
import { orDamaged } from './damaged-row.ts';
import { javascriptTranscoder } from './javascript.ts';
import { Machine } from './machine.ts';
import type { Spill } from './machine.ts';
import { rowPass, tablePass, type Pass } from './passes.ts';
import type { RowEncoder, Transcoder } from './rows.ts';
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
    encoder: (framing, selection) => new WasmEncoder(machine, rowPass(machine, framing, selection)),
    table: (columns, safe, selection) =>
      new WasmEncoder(machine, tablePass(machine, columns, safe, selection)),
    arrow: (table, selection) => new ArrowWriter(machine, table, selection),
  };
  return { transcoder, fallback: null };
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
      const written = orDamaged(batch, () => this.#run(output.address, chunkBytes));
      if (written > 0) yield output.bytes(written);
    } while (!pass.finished(this.#state));
  }

  /** The bytes written. */
  #run(address: number, chunkBytes: number): number {
    const written = this.#pass.run(this.#state, address, address + chunkBytes);
    if (written < 0) throw this.#fault(written);
    return written;
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
