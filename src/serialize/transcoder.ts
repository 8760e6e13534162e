import type { Batch } from '../store/batch.ts';
import type { Slot, Slots } from '../store/slots.ts';
import { javascriptTranscoder } from './javascript.ts';
import { Machine } from './machine.ts';
import type { Spill } from './machine.ts';
import type { Framing, RowEncoder, Transcoder } from './rows.ts';

const SMALLEST_CHUNK = 256;

/** By the negative of what `run` in transcode.as.ts answers. */
const FAULTS: Readonly<Record<number, string>> = {
  1: 'is not a sound BSON document',
  2: 'is nested more than 180 levels deep',
  3: 'has no _id, or is not a sound BSON document',
};

/**
 * The transcoder for batches that lie in `slots`: wasm, or the JavaScript one where that cannot run; `fallback` is then
 * the reason, to be logged once.
 */
export function createTranscoder(slots: Slots): { transcoder: Transcoder; fallback: string | null } {
  let machine: Machine;
  try {
    machine = new Machine(slots);
  } catch (error) {
    return {
      transcoder: javascriptTranscoder,
      fallback: error instanceof Error ? error.message : String(error),
    };
  }
  const transcoder: Transcoder = {
    name: 'wasm',
    encoder: (framing, fields) => new WasmEncoder(machine, framing, fields),
  };
  return { transcoder, fallback: null };
}

class WasmEncoder implements RowEncoder {
  readonly #machine: Machine;
  readonly #spill: Spill = { bytes: new Uint8Array() };
  /** The State, and behind it the names of the fields. */
  #slot: Slot | null;
  #batchAt = 0;

  constructor(machine: Machine, framing: Framing, fields: readonly string[] | undefined) {
    this.#machine = machine;
    const size = machine.wasm.STATE_SIZE.value;
    const names = fields ? nameList(fields) : new Uint8Array(0);
    this.#slot = machine.slots.take(size + names.length);
    this.#slot.bytes().set(names, size);
    machine.enter();
    machine.wasm.open(this.#state, framing === 'array' ? 1 : 0, fields ? this.#state + size : 0);
  }

  *encode(batch: Batch, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    if (!(chunkBytes >= SMALLEST_CHUNK)) {
      throw new RangeError(`chunkBytes must be at least ${SMALLEST_CHUNK}, got ${chunkBytes}`);
    }
    const machine = this.#machine;
    const { wasm } = machine;
    const start = batch.slot.address + batch.start;
    this.#batchAt = start;
    wasm.begin(this.#state, start, start + batch.length);
    do {
      const output = machine.output(chunkBytes);
      machine.spill = this.#spill;
      const written = wasm.run(this.#state, output.address, output.address + chunkBytes);
      if (written < 0) throw this.#fault(written);
      if (written > 0) yield output.bytes(written);
    } while (!wasm.finished(this.#state));
  }

  cut(): number {
    return this.#machine.wasm.endHere(this.#state) - this.#batchAt;
  }

  close(): void {
    if (!this.#slot) throw new TypeError('encoder closed twice');
    this.#slot.release();
    this.#slot = null;
    this.#spill.bytes = new Uint8Array();
    this.#machine.leave();
  }

  /** The address of what the machine remembers of this encoder. */
  get #state(): number {
    if (!this.#slot) throw new TypeError('encoder used after close');
    return this.#slot.address;
  }

  #fault(code: number): Error {
    const row = this.#machine.wasm.rowsDone(this.#state) + 1;
    return new Error(`Row ${row} of the batch ${FAULTS[-code] ?? `failed with code ${code}`}`);
  }
}

/** Names as isAmong in bson.as.ts reads them. */
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
