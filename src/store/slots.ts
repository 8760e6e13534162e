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
/** Smaller slots are for pages and for the state of encoders, and stay as they are. The binary logarithm of a size. */
const MERGED = 16;

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
 * Allocates slots of powers of two, by buddies: a slot is half of a larger one, and becomes one with the other half when
 * both are free. So small batches and large ones take the same memory.
 */
export class Slots {
  /** The memory that holds all slots. */
  readonly memory: WebAssembly.Memory;
  /** The addresses of free slots, by the binary logarithm of their size. All that no one has touched is free. */
  readonly #free = Array.from(
    { length: Math.log2(LARGEST_MEMORY) },
    (_, order) => new Set(2 ** order < RESERVED ? [] : [2 ** order]),
  );
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
    const [address, capacity] = [this.#find(order), 2 ** order];
    const present = this.memory.buffer.byteLength;
    const missing = address + capacity - present;
    // Each growth makes V8 collect garbage, so the memory doubles. What no one has touched costs addresses only.
    const growth = Math.min(LARGEST_MEMORY - present, Math.max(missing, present));
    if (missing > 0) this.memory.grow(Math.ceil(growth / PAGE));
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
        this.#release(address, order);
      },
    };
  }

  #find(order: number): number {
    const free = this.#free[order];
    if (!free) throw new RangeError('no memory left for batches');
    const [address = this.#find(order + 1)] = free;
    if (!free.delete(address)) free.add(address + 2 ** order);
    return address;
  }

  #release(address: number, order: number): void {
    const buddy = address ^ (2 ** order);
    if (order >= MERGED && this.#free[order]?.delete(buddy) === true)
      this.#release(Math.min(address, buddy), order + 1);
    else this.#free[order]?.add(address);
  }
}

function newMemory(): WebAssembly.Memory {
  if (typeof WebAssembly === 'undefined')
    throw new Error('WebAssembly is required, but this Node.js cannot run it: start it without --jitless.');
  const initial = RESERVED / PAGE + 128; // 8 MB ready: the first streams need no growth
  return new WebAssembly.Memory({ initial, maximum: LARGEST_MEMORY / PAGE });
}
