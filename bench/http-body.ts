const CR_LF_CR_LF = Buffer.from('\r\n\r\n');
const LF = 10;
const MOST_HEAD_BYTES = 16_384;

/**
 * Parses an HTTP/1.1 answer as it comes from the socket, and passes its body on without copying. Such a
 * client costs little beside the measured server. It supports chunked bodies and bodies with a length. Throws
 * an Error for anything else.
 */
export class HttpBody {
  /** The status. 0 before the head has come. */
  status = 0;
  head = '';
  /** Whether the body has ended as HTTP requires. */
  ended = false;
  readonly #onPiece: (piece: Uint8Array) => void;
  #state: 'head' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'counted' = 'head';
  #line: Buffer = Buffer.alloc(0);
  #left = 0;

  constructor(onPiece: (piece: Uint8Array) => void) {
    this.#onPiece = onPiece;
  }

  push(bytes: Buffer): void {
    let at = this.#state === 'head' ? this.#takeHead(bytes) : 0;
    while (at < bytes.length && !this.ended)
      at =
        this.#state === 'chunk' || this.#state === 'counted'
          ? this.#takeBody(bytes, at)
          : this.#takeLine(bytes, at);
  }

  /** Returns the start of the body in `bytes`, or their length while the head is incomplete. */
  #takeHead(bytes: Buffer): number {
    const before = this.#line.length;
    this.#line = Buffer.concat([this.#line, bytes]);
    const end = this.#line.indexOf(CR_LF_CR_LF);
    if (end < 0 && this.#line.length > MOST_HEAD_BYTES)
      throw new Error('an answer without an end of its head');
    if (end < 0) return bytes.length;
    this.head = this.#line.toString('latin1', 0, end);
    this.status = Number(this.head.slice(9, 12));
    this.#line = Buffer.alloc(0);
    const length = /^content-length: *(\d+)/im.exec(this.head)?.[1];
    if (length === undefined && !/^transfer-encoding: *chunked/im.test(this.head))
      throw new Error(`a body of no known length: ${this.head}`);
    this.#state = length === undefined ? 'size' : 'counted';
    this.#left = Number(length ?? 0);
    this.ended = length === '0';
    return end + CR_LF_CR_LF.length - before;
  }

  #takeBody(bytes: Buffer, at: number): number {
    const piece = bytes.subarray(at, at + this.#left);
    this.#onPiece(piece);
    this.#left -= piece.length;
    if (this.#left === 0) {
      if (this.#state === 'counted') this.ended = true;
      else this.#state = 'chunk-end';
    }
    return at + piece.length;
  }

  #takeLine(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(LF, at);
    const stop = end < 0 ? bytes.length : end + 1;
    this.#line =
      this.#line.length > 0
        ? Buffer.concat([this.#line, bytes.subarray(at, stop)])
        : bytes.subarray(at, stop);
    if (end < 0) {
      this.#line = Buffer.from(this.#line); // the socket reuses its buffer
      return stop;
    }
    this.#useLine(this.#line.toString('latin1'));
    this.#line = Buffer.alloc(0);
    return stop;
  }

  #useLine(line: string): void {
    if (this.#state === 'size') {
      if (!/^[0-9a-f]+\r\n$/i.test(line)) throw new Error(`not the size of a chunk: ${JSON.stringify(line)}`);
      this.#left = parseInt(line, 16);
      this.#state = this.#left === 0 ? 'trailer' : 'chunk';
      return;
    }
    if (line !== '\r\n') throw new Error(`a chunk is followed by ${JSON.stringify(line)}`);
    if (this.#state === 'trailer') this.ended = true;
    this.#state = 'size';
  }
}
