import { setImmediate as turn } from 'node:timers/promises';
import type { RowEncoder } from '../../rows/rows.ts';
import type { Batch } from '../../store/batch.ts';

const CHUNK_BYTES = 64 * 1024;
/** The text that is written before other requests get their turn: about a millisecond of work. Bytes. */
const TURN_BYTES = 1024 * 1024;

/** Bytes: memory kept for the next pages, the largest buffer that is kept (larger ones are rare), and the smallest. */
const KEPT_BYTES = 8 * 1024 * 1024;
const LARGEST_KEPT = 1024 * 1024;
const SMALLEST = 64 * 1024;

/** Memory that no page uses now, by its size, which is a power of two. */
const kept = new Map<number, Buffer[]>();
let keptBytes = 0;

/**
 * The body of a page until it is sent. Its memory then serves the next page. Fresh memory costs more than the copy: V8
 * counts garbage outside of its heap until it collects, and a few hundred pages a second make it collect the whole heap
 * over and over (measured: five times a second, pauses of 12 ms).
 */
export class PageBody {
  #memory = take(SMALLEST);
  #length = 0;

  append(piece: Uint8Array | string): void {
    if (typeof piece === 'string') {
      this.#reserve(piece.length * 3); // UTF-8 takes at most 3 bytes for each UTF-16 code unit
      this.#length += this.#memory.write(piece, this.#length);
    } else {
      this.#reserve(piece.length);
      this.#memory.set(piece, this.#length);
      this.#length += piece.length;
    }
  }

  /** The bytes appended so far, valid until `release`. */
  get bytes(): Uint8Array {
    return this.#memory.subarray(0, this.#length);
  }

  /** Call once, when `bytes` is not read any more. Without the call, the garbage collector frees the memory. */
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

/** Releases the batch and closes the encoder. A row can have 16 MB of BSON, so other requests get turns in between. */
export async function collect(batch: Batch, encoder: RowEncoder, head = '', tail = ''): Promise<PageBody> {
  try {
    const body = new PageBody();
    body.append(head);
    let written = 0;
    for (const chunk of encoder.encode(batch, CHUNK_BYTES)) {
      body.append(chunk);
      written += chunk.length;
      if (written < TURN_BYTES) continue;
      written = 0;
      await turn();
    }
    body.append(tail);
    return body;
  } finally {
    encoder.close();
    batch.release();
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
