/**
 * Slots: pieces of one large memory that hold batches. The memory is that of the wasm module, so the
 * transcoder reads a batch where the store put it, without a copy. Its addresses in the process are reserved up to its
 * maximum: when it grows, a read of the operating system into a slot still arrives there.
 *
 * A slot keeps its place until it is released, but a view of it may not: growth of a wasm memory detaches all views.
 * `bytes()` therefore makes a fresh view each time. Never keep a view across an await.
 */
const PAGE = 65_536;
/** The first pages belong to the wasm module, for its static data and its shadow stack. */
const RESERVED = 4 * PAGE;
const SMALLEST = 1 << 10;
/** 1 GiB: far above what the limits on open streams allow, far below what wasm32 can address. */
const LARGEST_MEMORY = 1 << 30;

export interface Slot {
  /** Byte offset in the memory. */
  readonly address: number;
  /** Usable bytes, at least as many as were requested. */
  readonly capacity: number;
  /** A view of the first `length` bytes (default: all). Valid until an await or the next `take` by any code. */
  bytes(length?: number): Uint8Array<ArrayBuffer>;
  /** Releases the slot. Throws TypeError on a second call, which is a bug. */
  release(): void;
}

/**
 * Allocates slots from free lists by powers of two, without splitting or merging: a released slot serves the next
 * request of its size class.
 */
export class Slots {
  /** The memory that holds all slots. */
  readonly memory: WebAssembly.Memory;
  /** The addresses of released slots, by the binary logarithm of their size. */
  readonly #free: number[][] = Array.from({ length: 31 }, () => []);
  #end = RESERVED;
  #taken = 0;

  constructor(memory = newMemory()) {
    this.memory = memory;
  }

  /** Number of slots not yet released. 0 when nothing is under way. */
  get taken(): number {
    return this.#taken;
  }

  /** Takes a slot of at least `size` bytes. Throws RangeError when the memory reaches its ceiling. */
  take(size: number): Slot {
    const order = Math.ceil(Math.log2(Math.max(SMALLEST, size)));
    const [free, capacity] = [this.#free[order] ?? [], 2 ** order];
    const address = free.pop() ?? this.#extend(capacity);
    this.#taken++;
    let released = false;
    return {
      address,
      capacity,
      bytes: (length = capacity) => new Uint8Array(this.memory.buffer, address, length),
      release: () => {
        if (released) throw new TypeError('slot released twice');
        released = true;
        this.#taken--;
        free.push(address);
      },
    };
  }

  #extend(capacity: number): number {
    const address = this.#end;
    const present = this.memory.buffer.byteLength;
    const missing = address + capacity - present;
    if (address + capacity > LARGEST_MEMORY) throw new RangeError('no memory left for batches');
    // Each growth makes V8 collect garbage, so the memory doubles. What no one has touched costs addresses only.
    const growth = Math.min(LARGEST_MEMORY - present, Math.max(missing, present));
    if (missing > 0) this.memory.grow(Math.ceil(growth / PAGE));
    this.#end = address + capacity;
    return address;
  }
}

function newMemory(): WebAssembly.Memory {
  if (typeof WebAssembly === 'undefined')
    throw new Error('WebAssembly is required, but this Node.js cannot run it: start it without --jitless.');
  const initial = RESERVED / PAGE + 128; // 8 MB ready: the first streams need no growth
  return new WebAssembly.Memory({ initial, maximum: LARGEST_MEMORY / PAGE });
}
