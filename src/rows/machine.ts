import { BSON, Decimal128, EJSON } from '../store/values/bson.ts';
import { BSON_TYPE } from '../store/values/bson-types.ts';
import type { Slot, Slots } from '../store/turns/slots.ts';
import { instantiate, type TranscodeExports } from './wasm.ts';

/** The text of a rare value that waits to be copied out. It belongs to the encoder that writes the value's row. */
export interface Spill {
  bytes: Uint8Array;
}

/** The messages of faults, by the negative of their code in transcode.as.ts, arrow-rows.as.ts and arrow-json.as.ts. */
const FAULTS: Readonly<Record<number, string>> = {
  1: 'is not a sound BSON document',
  2: 'is nested more than 180 levels deep',
  3: 'has no _id, or is not a sound BSON document',
  5: 'has a value that fits no column of its schema',
};

/** Why a row cannot be written. `code`: what the wasm module returned. */
export function whyFailed(code: number): string {
  return FAULTS[-code] ?? `failed with code ${code}`;
}

/** The wasm module over the memory of `slots`. Its encoders share one output slot, and the text of rare types. */
export class Machine {
  readonly slots: Slots;
  /** How long all runs of encoders took. Milliseconds. */
  busyMs = 0;
  /** The spill of the encoder that writes rows: set before each `run`. */
  spill: Spill = { bytes: new Uint8Array() };
  #output: Slot | null = null;
  #users = 0;
  #view = new Uint8Array();
  readonly #wasm: () => TranscodeExports;

  /** Throws when the module cannot be loaded. */
  constructor(slots: Slots) {
    this.slots = slots;
    this.#wasm = slots.over((memory) => this.#instantiate(memory));
  }

  /** The functions of the module over the present memory. See Slots.over. */
  get wasm(): TranscodeExports {
    return this.#wasm();
  }

  #instantiate(memory: object): TranscodeExports {
    this.#view = new Uint8Array();
    return instantiate(memory, {
      number: (value: number, out: number) => this.#write(String(value), out),
      decimal: (at: number, out: number) => this.#write(this.#decimal(at), out),
      double: (at: number) => Number(this.#decimal(at)),
      extended: (type: number, at: number, end: number) => {
        const text = JSON.stringify(extendedJson(type, this.#memory().subarray(at, end)));
        this.spill.bytes = Buffer.from(text);
        return this.spill.bytes.length;
      },
      spilled: (out: number, length: number) => {
        this.#memory().set(this.spill.bytes.subarray(0, length), out);
        this.spill.bytes = this.spill.bytes.subarray(length);
      },
    });
  }

  /** Called when an encoder begins. The output slot is held while there are any encoders. */
  enter(): void {
    this.#users++;
  }

  leave(): void {
    this.#users--;
    if (this.#users > 0) return;
    this.#output?.release();
    this.#output = null;
  }

  /** The output slot. All encoders share it, since a chunk is valid only until the next step of any encoder. */
  output(chunkBytes: number): Slot {
    if (this.#output && this.#output.capacity >= chunkBytes) return this.#output;
    this.#output?.release();
    this.#output = null;
    this.#output = this.slots.take(chunkBytes);
    return this.#output;
  }

  /** A new view is made only when growth of the memory detached the old one: number() is called millions of times. */
  #memory(): Uint8Array {
    if (this.#view.length === 0) this.#view = new Uint8Array(this.slots.memory.buffer);
    return this.#view;
  }

  /** The digits of a Decimal128. */
  #decimal(at: number): string {
    return new Decimal128(this.#memory().slice(at, at + 16)).toString();
  }

  #write(ascii: string, out: number): number {
    const memory = this.#memory();
    for (let i = 0; i < ascii.length; i++) memory[out + i] = ascii.charCodeAt(i);
    return ascii.length;
  }
}

/**
 * Converts a single BSON value (its type byte and its bytes) to what JSON.stringify turns into relaxed Extended JSON.
 * It is for the types that have no JSON form of their own. Throws BSON errors when the bytes are not sound.
 */
export function extendedJson(type: number, value: Uint8Array): unknown {
  if (type === BSON_TYPE.regularExpression) return regularExpression(value);
  const document = Buffer.alloc(value.length + 8);
  document.writeInt32LE(document.length, 0);
  document[4] = type;
  document.write('v', 5);
  document.set(value, 7);
  const sound = BSON.deserialize(document, { promoteValues: false, validation: { utf8: false } });
  return (EJSON.serialize(sound, { relaxed: true }) as { v: unknown }).v;
}

/** Written by hand: bson refuses unknown options, but a stream must not break on what a database has accepted. */
function regularExpression(value: Uint8Array): unknown {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const pattern = bytes.indexOf(0);
  const options = bytes.toString('utf8', pattern + 1, bytes.length - 1);
  return {
    $regularExpression: {
      pattern: bytes.toString('utf8', 0, pattern),
      options: Array.from(options).sort().join(''),
    },
  };
}
