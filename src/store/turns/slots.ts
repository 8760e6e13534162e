/**
 * Slots: pieces of one large memory that hold batches. The memory is that of the wasm module, so the
 * transcoder reads a batch where the store put it, without a copy. Its addresses in the process are reserved up to its
 * maximum: when it grows, a read of the operating system into a slot still arrives there.
 *
 * A slot keeps its place until it is released, but a view of it may not: growth of a wasm memory detaches all views, and
 * a wasm memory never shrinks, so a new one takes its place after many slots were released. `bytes()` therefore makes a
 * fresh view each time. Never keep a view across an await.
 */
import { Registry } from '../../base/registry.ts';

const PAGE = 65_536;
/** The first pages belong to the wasm module, for its static data and its shadow stack. */
const RESERVED = 4 * PAGE;
/** 8 MB ready: the first streams need no growth. */
const INITIAL = RESERVED + 128 * PAGE;
const SMALLEST = 1 << 10;
/** 1 GiB: far above what the limits on open streams allow, far below what wasm32 can address. */
const LARGEST_MEMORY = 1 << 30;
/** Smaller slots are for pages and for the state of encoders, and stay as they are. The binary logarithm of a size. */
const MERGED = 16;

/** A memory of which slots took more than LARGE bytes is replaced after QUIET_MS milliseconds in which they took little. */
const LARGE = 8 << 20;
const QUIET_MS = 1_000;
/** V8 begins to collect garbage, in small steps, when this number of bytes outside of its heap is new. */
const NOTICED = 65 << 20;

export interface Slot {
  readonly address: number;
  /** Usable bytes, at least as many as were requested. */
  readonly capacity: number;
  /** Set it while the operating system writes to the slot: the memory then stays. */
  isFilling?: boolean;
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
  #memory: WebAssembly.Memory;
  /** The addresses of free slots, by the binary logarithm of their size. All that no one has touched is free. */
  readonly #free = Array.from({ length: Math.log2(LARGEST_MEMORY) }, (_, order) =>
    1 << order < RESERVED ? [] : [1 << order],
  );
  readonly #taken = new Registry<Slot>();
  readonly #remake: (() => void)[] = [];
  /** The bytes of all slots: now, at most since the last look, and at most since this memory is in use. */
  #bytes = 0;
  #recently = 0;
  #most = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(memory = newMemory(INITIAL)) {
    this.#memory = memory;
  }

  get memory(): WebAssembly.Memory {
    return this.#memory;
  }

  /**
   * Returns what `make` makes of the memory, such as the functions of a wasm module, and makes it again for each new
   * memory. Never keep the result across an await: it may be of an old memory, which it would keep as well.
   */
  over<T>(make: (memory: WebAssembly.Memory) => T): () => T {
    let made = make(this.#memory);
    this.#remake.push(() => (made = make(this.#memory)));
    return () => made;
  }

  /** Number of slots not yet released. 0 when nothing is under way. */
  get taken(): number {
    return this.#taken.size;
  }

  /** Takes a slot of at least `size` bytes. Throws RangeError when the memory reaches its ceiling. */
  take(size: number): Slot {
    const order = 32 - Math.clz32(Math.max(SMALLEST, size) - 1);
    const address = this.#find(order);
    const capacity = 1 << order;
    const present = this.memory.buffer.byteLength;
    const missing = address + capacity - present;
    // Each growth makes V8 collect garbage, so the memory doubles. What no one has touched costs addresses only.
    const growth = Math.min(LARGEST_MEMORY - present, Math.max(missing, present));
    if (missing > 0) this.memory.grow(Math.ceil(growth / PAGE));
    let released = false;
    const slot: Slot = {
      address,
      capacity,
      isFilling: false,
      bytes: (length = capacity) => new Uint8Array(this.memory.buffer, address, length),
      release: () => {
        if (released) throw new TypeError('slot released twice');
        released = true;
        this.#taken.remove(place, slot);
        this.#bytes -= capacity;
        this.#release(address, order);
      },
    };
    const place = this.#taken.add(slot);
    this.#count(capacity);
    return slot;
  }

  #count(capacity: number): void {
    this.#bytes += capacity;
    this.#recently = Math.max(this.#recently, this.#bytes);
    this.#most = Math.max(this.#most, this.#bytes);
    if (this.#most > LARGE) this.#timer ??= setTimeout(() => this.#look(), QUIET_MS).unref();
  }

  /** Replaces the memory when few of its slots were taken since the last look. Else it will look again. */
  #look(): void {
    const isQuiet = this.#recently <= this.#most / 4 && !this.#taken.all().some((slot) => slot.isFilling);
    this.#recently = this.#bytes;
    const isReplaced = isQuiet && this.#replace();
    this.#timer = isReplaced ? null : setTimeout(() => this.#look(), QUIET_MS).unref();
    if (isReplaced) this.#most = this.#bytes;
  }

  /** Returns whether there is a new memory. A system that has none to spare keeps the old one: a timer must not fail. */
  #replace(): boolean {
    const slots = this.#taken.all();
    const from = slots.map((slot) => slot.bytes());
    const end = slots.reduce((most, { address, capacity }) => Math.max(most, address + capacity), INITIAL);
    try {
      this.#memory = newMemory(end);
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
    for (const [at, slot] of slots.entries()) slot.bytes().set(from[at] ?? []);
    for (const remake of this.#remake) remake();
    new ArrayBuffer(NOTICED); // else the old memory would stay as long as the server is idle
    return true;
  }

  #find(order: number): number {
    const free = this.#free[order];
    if (!free) throw new RangeError('no memory left for batches');
    const address = free.pop();
    if (address !== undefined) return address;
    const half = this.#find(order + 1);
    free.push(half + (1 << order));
    return half;
  }

  #release(address: number, order: number): void {
    const free = this.#free[order] ?? [];
    const buddy = address ^ (1 << order);
    const at = order < MERGED ? -1 : free.indexOf(buddy);
    if (at === -1) free.push(address);
    else {
      free.splice(at, 1);
      this.#release(Math.min(address, buddy), order + 1);
    }
  }
}

function newMemory(bytes: number): WebAssembly.Memory {
  if (typeof WebAssembly === 'undefined')
    throw new Error('WebAssembly is required, but this Node.js cannot run it: start it without --jitless.');
  return new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE), maximum: LARGEST_MEMORY / PAGE });
}
