import { BrokenSource } from './row.ts';

export type Coding = 'gzip' | 'zstd' | 'Brotli';

/** Compressed bytes, read by their number. */
export class CompressedBytes {
  /** The number of bytes that were taken. */
  position = 0;
  readonly #coding: Coding;
  readonly #source: AsyncIterator<Buffer>;
  /** What was read, but not taken. */
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterator<Buffer>, coding: Coding) {
    this.#source = source;
    this.#coding = coding;
  }

  async isAtEnd(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const next = await this.#source.next();
      if (next.done) return true;
      this.#rest = next.value;
    }
    return false;
  }

  /** The next bytes, at most this number. null: there are no more. */
  async next(most = Infinity): Promise<Buffer | null> {
    if (await this.isAtEnd()) return null;
    const bytes = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(bytes.length);
    this.position += bytes.length;
    return bytes;
  }

  /** Gives back the last of the bytes that were taken. */
  giveBack(bytes: Buffer): void {
    this.#rest = Buffer.concat([bytes, this.#rest]);
    this.position -= bytes.length;
  }

  /** Exactly this number of bytes, in pieces. */
  async *pieces(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0;) {
      const piece = await this.#piece(left);
      left -= piece.length;
      yield piece;
    }
  }

  /** Exactly this number of bytes. */
  async take(length: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for await (const piece of this.pieces(length)) pieces.push(piece);
    return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
  }

  async skip(length: number): Promise<void> {
    for (let left = length; left > 0;) left -= (await this.#piece(left)).length;
  }

  async #piece(most: number): Promise<Buffer> {
    return (await this.next(most)) ?? this.fail('ends too early, at', this.position);
  }

  fail(reason: string, byte: number, options?: ErrorOptions): never {
    const message = `cannot read the source to its end: the ${this.#coding} data ${reason} byte ${byte}`;
    throw new BrokenSource(message, options);
  }

  failBehind(byte: number): never {
    return this.fail('is followed by other bytes, from', byte);
  }
}

/** Whether an error is one of zlib: of its classes of errors alone, all have a number. */
export function isZlib(error: unknown, code?: string): error is Error {
  return error instanceof Error && 'errno' in error && 'code' in error && (code ?? error.code) === error.code;
}
