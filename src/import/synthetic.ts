import { BSON_TYPE } from '../store/values/bson-types.ts';
import { DocumentWriter, nameBytes } from './document-writer.ts';
import type { SourceRows, SourceRow } from './row.ts';

/** The largest seed. Seeds are 32-bit numbers. */
export const MAX_SEED = 2 ** 32 - 1;
/** The maximum number of items: an ObjectId has 32 bits for the seconds. */
export const MAX_COUNT = 1_000_000_000;

const CATEGORIES = ['books', 'garden', 'toys', 'electronics', 'kitchen', 'sports', 'music', 'office'];
const WORDS = (
  'lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore ' +
  'magna aliqua'
).split(' ');
const DESCRIPTION_WORDS = 8;
const ROWS_AT_ONCE = 1_000;
/** 2023-11-14T22:13:20Z, the creation time of the first item. Each further item is one second later. */
const FIRST_SECOND = 1_700_000_000;

const ID = nameBytes('_id');
const NAME = nameBytes('name');
const CATEGORY = nameBytes('category');
const PRICE = nameBytes('price');
const DESCRIPTION = nameBytes('description');
const STOCK = nameBytes('stock');
const CREATED = nameBytes('createdAt');
const UPDATED = nameBytes('updatedAt');

/**
 * `count` synthetic items of about 205 bytes of BSON, always the same for a seed. The ids are ascending ObjectIds that
 * contain the seed, so sets of different seeds do not overlap.
 */
// eslint-disable-next-line @typescript-eslint/require-await -- a source is asynchronous; this one has nothing to wait for
export async function* generateItems(count: number, seed: number): SourceRows {
  const items = new SyntheticItems(seed);
  for (let at = 1; at <= count;) {
    const rows: SourceRow[] = [];
    for (const end = Math.min(at + ROWS_AT_ONCE - 1, count); at <= end; at++)
      rows.push({ at, item: items.next() });
    yield rows;
  }
}

/**
 * Writes synthetic items directly as BSON, several times faster than bson's serializer writes objects. The
 * output must never change: benchmarks and bug reports name a seed and a count, and mean these rows.
 */
export class SyntheticItems {
  readonly #seed: number;
  readonly #random: () => number;
  readonly #writer = new DocumentWriter();
  readonly #id = Buffer.alloc(12);
  #index = 0;

  /** `seed`: a 32-bit number. */
  constructor(seed: number) {
    this.#seed = seed;
    this.#random = mulberry32(seed);
  }

  /** The next item. Its bytes do not change later. */
  next(): Uint8Array {
    const writer = this.#writer;
    const random = this.#random;
    const index = this.#index++;
    writer.begin();
    this.#writeId(index);
    writer.ascii(NAME, `${at(WORDS, index)} ${at(WORDS, index * 7)} ${index}`);
    writer.ascii(CATEGORY, pick(CATEGORIES, random()));
    writer.double(PRICE, Math.round(random() * 100_000) / 100);
    let description = pick(WORDS, random());
    for (let n = 1; n < DESCRIPTION_WORDS; n++) description += ` ${pick(WORDS, random())}`;
    writer.ascii(DESCRIPTION, description);
    writer.number(STOCK, Math.floor(random() * 1_000));
    writer.date(CREATED, (FIRST_SECOND + index) * 1_000);
    writer.date(UPDATED, (FIRST_SECOND + index * 2) * 1_000);
    return writer.end();
  }

  /** The ObjectId: seconds, then the seed in place of the random bytes, then a counter. */
  #writeId(index: number): void {
    const id = this.#id;
    id.writeUInt32BE(FIRST_SECOND + index);
    id.writeUInt32BE(this.#seed, 4);
    id.writeUInt32BE(index & 0xffffff, 8);
    this.#writer.element(BSON_TYPE.objectId, ID);
    this.#writer.put(id);
  }
}

function at(from: readonly string[], index: number): string {
  return from[index % from.length] ?? '';
}

/** `random`: a number in [0, 1). */
function pick(from: readonly string[], random: number): string {
  return at(from, Math.floor(random * from.length));
}

/** Pseudorandom numbers in [0, 1), the same on every machine (mulberry32 by T. Ettinger, public domain). */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
