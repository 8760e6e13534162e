/** What is kept for the next pages at most, and what is too large to be kept at all: it is rare. Bytes. */
const KEPT_BYTES = 8 * 1024 * 1024;
const LARGEST_KEPT = 1024 * 1024;
const SMALLEST = 64 * 1024;

/** Memory that no page uses now, by its size: powers of two. */
const kept = new Map<number, Buffer[]>();
let keptBytes = 0;

/**
 * The body of a page, while it is put together and until it is out; then its memory is the next page's. Fresh memory for each
 * page costs more than the copy: V8 counts what is garbage outside of its heap until it collects, and at a few hundred
 * pages a second that makes it collect the whole heap over and over (seen: five times a second, pauses of 12 ms).
 */
export class PageBody {
  #memory = take(SMALLEST);
  #length = 0;

  append(piece: Uint8Array | string): void {
    if (typeof piece === 'string') {
      this.#reserve(piece.length * 3); // UTF-8 makes at most so much of UTF-16
      this.#length += this.#memory.write(piece, this.#length);
    } else {
      this.#reserve(piece.length);
      this.#memory.set(piece, this.#length);
      this.#length += piece.length;
    }
  }

  /** What was appended; valid until `release`. */
  get bytes(): Uint8Array {
    return this.#memory.subarray(0, this.#length);
  }

  /** Called once, when nobody reads `bytes` any more. Forgotten, it costs memory that is collected as any other. */
  release(): void {
    give(this.#memory);
    this.#memory = Buffer.alloc(0);
    this.#length = 0;
  }

  #reserve(more: number): void {
    const wanted = this.#length + more;
    if (wanted <= this.#memory.length) return;
    const before = this.#memory;
    this.#memory = take(2 ** Math.ceil(Math.log2(wanted)));
    this.#memory.set(before.subarray(0, this.#length));
    give(before);
  }
}

function take(size: number): Buffer {
  const found = kept.get(size)?.pop();
  if (!found) return Buffer.allocUnsafeSlow(size);
  keptBytes -= size;
  return found;
}

function give(memory: Buffer): void {
  const size = memory.length;
  if (size > LARGEST_KEPT || keptBytes + size > KEPT_BYTES) return;
  keptBytes += size;
  const same = kept.get(size);
  if (same) same.push(memory);
  else kept.set(size, [memory]);
}
