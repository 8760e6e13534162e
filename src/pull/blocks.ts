const BLOCK_BYTES = 64 * 1024;

/**
 * Stores bytes that come in pieces of any size as a few large blocks. A million tiny buffers would take far
 * more memory than their bytes.
 */
export class Blocks {
  #full: Buffer[] = [];
  #block = Buffer.alloc(0);
  #filled = 0;

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      if (this.#filled === this.#block.length) this.#begin();
      const piece = bytes.subarray(at, at + this.#block.length - this.#filled);
      this.#block.set(piece, this.#filled);
      this.#filled += piece.length;
      at += piece.length;
    }
  }

  /** Removes and returns the bytes added since the last call. */
  take(): Buffer[] {
    const taken = [...this.#full, this.#block.subarray(0, this.#filled)].filter(({ length }) => length > 0);
    this.#full = [];
    this.#block = Buffer.alloc(0);
    this.#filled = 0;
    return taken;
  }

  #begin(): void {
    if (this.#filled > 0) this.#full.push(this.#block);
    this.#block = Buffer.allocUnsafe(BLOCK_BYTES);
    this.#filled = 0;
  }
}
