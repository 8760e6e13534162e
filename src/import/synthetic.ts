import type { SourceRow } from './row.ts';

/** The largest seed. Seeds are 32-bit numbers. */
export const MAX_SEED = 2 ** 32 - 1;
/**
 * The maximum number of items. Each item is one second later than the one before, and an ObjectId has 32 bits
 * for the seconds.
 */
export const MAX_COUNT = 1_000_000_000;

const CATEGORIES = ['books', 'garden', 'toys', 'electronics', 'kitchen', 'sports', 'music', 'office'].map(
  latin,
);
const WORDS = (
  'lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore ' +
  'magna aliqua'
)
  .split(' ')
  .map(latin);
const DESCRIPTION_WORDS = 8;
/** 2023-11-14T22:13:20Z, the creation time of the first item. Each further item is one second later. */
const FIRST_SECOND = 1_700_000_000;
/** The size of a slab. One allocation holds about a thousand items. */
const SLAB_BYTES = 256 * 1024;
/** An upper bound for the size of an item: the fixed fields and at most ten words of 11 letters. Bytes. */
const LONGEST_ITEM = 512;
const SPACE = 0x20;

/** The beginnings of the elements: type byte, name, NUL (bsonspec.org). */
const ID = element(0x07, '_id');
const NAME = element(0x02, 'name');
const CATEGORY = element(0x02, 'category');
const PRICE = element(0x01, 'price');
const DESCRIPTION = element(0x02, 'description');
const STOCK = element(0x10, 'stock');
const CREATED = element(0x09, 'createdAt');
const UPDATED = element(0x09, 'updatedAt');

/**
 * `count` synthetic items. A seed always gives the same items, and a smaller count gives the first items of a
 * larger one. The ids are ascending ObjectIds that contain the seed, so sets of different seeds do not
 * overlap. An item has about 205 bytes of BSON.
 */
// eslint-disable-next-line @typescript-eslint/require-await -- a source is asynchronous; this one has nothing to wait for
export async function* generateItems(count: number, seed: number): AsyncGenerator<SourceRow> {
  const items = new SyntheticItems(seed);
  for (let at = 1; at <= count; at++) yield { at, item: items.next() };
}

/**
 * Writes synthetic items directly as BSON, several times faster than bson's serializer writes objects. The
 * output must never change: benchmarks and bug reports name a seed and a count, and mean these rows.
 */
export class SyntheticItems {
  readonly #seed: number;
  readonly #random: () => number;
  #slab = new Uint8Array(SLAB_BYTES);
  #view = new DataView(this.#slab.buffer);
  #at = 0;
  #index = 0;

  /** `seed`: a 32-bit number. */
  constructor(seed: number) {
    this.#seed = seed;
    this.#random = mulberry32(seed);
  }

  /** The next item. Its bytes do not change later. */
  next(): Uint8Array {
    if (this.#at + LONGEST_ITEM > SLAB_BYTES) this.#newSlab();
    const start = this.#at;
    const index = this.#index++;
    const random = this.#random;
    this.#at += 4;
    this.#objectId(index);
    this.#string(NAME, () => {
      this.#put(word(index));
      this.#byte(SPACE);
      this.#put(word(index * 7));
      this.#byte(SPACE);
      this.#digits(index);
    });
    this.#string(CATEGORY, () => this.#put(pick(CATEGORIES, random())));
    this.#double(PRICE, Math.round(random() * 100_000) / 100);
    this.#string(DESCRIPTION, () => {
      this.#put(pick(WORDS, random()));
      for (let n = 1; n < DESCRIPTION_WORDS; n++) {
        this.#byte(SPACE);
        this.#put(pick(WORDS, random()));
      }
    });
    this.#int32(STOCK, Math.floor(random() * 1_000));
    this.#date(CREATED, (FIRST_SECOND + index) * 1_000);
    this.#date(UPDATED, (FIRST_SECOND + index * 2) * 1_000);
    this.#byte(0);
    this.#view.setInt32(start, this.#at - start, true);
    return this.#slab.subarray(start, this.#at);
  }

  #newSlab(): void {
    this.#slab = new Uint8Array(SLAB_BYTES);
    this.#view = new DataView(this.#slab.buffer);
    this.#at = 0;
  }

  /** The ObjectId: seconds, then the seed in place of the random bytes, then a counter. */
  #objectId(index: number): void {
    this.#put(ID);
    this.#view.setUint32(this.#at, FIRST_SECOND + index);
    this.#view.setUint32(this.#at + 4, this.#seed);
    this.#view.setUint32(this.#at + 8, index & 0xffffff);
    this.#at += 12;
  }

  #string(head: Uint8Array, text: () => void): void {
    this.#put(head);
    const start = this.#at;
    this.#at += 4;
    text();
    this.#byte(0);
    this.#view.setInt32(start, this.#at - start - 4, true);
  }

  #double(head: Uint8Array, value: number): void {
    this.#put(head);
    this.#view.setFloat64(this.#at, value, true);
    this.#at += 8;
  }

  #int32(head: Uint8Array, value: number): void {
    this.#put(head);
    this.#view.setInt32(this.#at, value, true);
    this.#at += 4;
  }

  #date(head: Uint8Array, milliseconds: number): void {
    this.#put(head);
    this.#view.setUint32(this.#at, milliseconds % 2 ** 32, true);
    this.#view.setUint32(this.#at + 4, Math.floor(milliseconds / 2 ** 32), true);
    this.#at += 8;
  }

  #digits(value: number): void {
    const text = String(value);
    for (let n = 0; n < text.length; n++) this.#byte(text.charCodeAt(n));
  }

  #byte(value: number): void {
    this.#slab[this.#at++] = value;
  }

  #put(bytes: Uint8Array): void {
    const slab = this.#slab;
    let at = this.#at;
    // A loop is faster than `set` below about 30 bytes.
    let from = 0;
    while (from < bytes.length) slab[at++] = bytes[from++] ?? 0;
    this.#at = at;
  }
}

function element(type: number, name: string): Uint8Array {
  return Uint8Array.of(type, ...latin(name), 0);
}

/** The bytes of an ASCII text. */
function latin(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function word(index: number): Uint8Array {
  return WORDS[index % WORDS.length] ?? new Uint8Array();
}

/** `random`: a number in [0, 1). */
function pick(from: readonly Uint8Array[], random: number): Uint8Array {
  return from[Math.floor(random * from.length)] ?? new Uint8Array();
}

/**
 * Pseudorandom numbers in [0, 1) from 32 bits of state, the same on every machine (mulberry32 by T. Ettinger,
 * public domain).
 */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
