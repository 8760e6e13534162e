import type { EditionCopy } from './edition/copy-edition.ts';
import type { ProvedPlace } from './proof.ts';

/** A copy of a set: a file, a table, or lines that a pipe has taken. What it has is proved. */
export interface Copy {
  /** For messages. */
  readonly name: string;
  readonly place: ProvedPlace;
  /** Adds lines of rows and removals that are not proved yet. The bytes are only valid during the call. */
  add(bytes: Uint8Array): void;
  /** Takes over what was added, and the place behind it, both or neither. */
  prove(place: ProvedPlace): Promise<void> | void;
  /** Discards what was added since the last proof. */
  takeBack(): Promise<void> | void;
  /**
   * Called once a run, when the copy is whole. `rows`: all ids, in lines. Rejects with Refusal if it cannot have these.
   */
  confirm?(rows: () => AsyncIterable<Buffer>): Promise<void>;
  /** Empties the copy: all rows follow again. Missing where what is written may have been read already. */
  restart?(): Promise<void> | void;
  /** The copy as one that can be brought to an edition. Missing where rows have no keys. */
  readonly asEdition?: EditionCopy;
  close(): Promise<void> | void;
}

const LEAST_BYTES = 64 * 1024;

/** Lines that are not proved yet, as one buffer: a million tiny ones would take far more memory than their bytes. */
export class HeldLines {
  #bytes = Buffer.alloc(0);
  #length = 0;

  add(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(LEAST_BYTES, 2 * this.#bytes.length, length));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = length;
  }

  /** Removes and returns the bytes added since the last call. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = Buffer.alloc(0);
    this.#length = 0;
    return taken;
  }
}
