/** Looks for a text in bytes that come in pieces. */
export class Finder {
  readonly #text: Buffer;
  /** The end of what came, one byte shorter than the text. */
  #tail = Buffer.alloc(0);

  constructor(text: string) {
    this.#text = Buffer.from(text);
  }

  /** Whether the text is in this piece, or ends in it. A piece is not kept. */
  isIn(piece: Uint8Array): boolean {
    const most = this.#text.length - 1;
    const seam = Buffer.concat([this.#tail, piece.subarray(0, most)]);
    if (
      seam.includes(this.#text) ||
      Buffer.from(piece.buffer, piece.byteOffset, piece.length).includes(this.#text)
    )
      return true;
    this.#tail = Buffer.concat([this.#tail, piece.subarray(-most)]).subarray(-most);
    return false;
  }
}
