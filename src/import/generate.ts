import { SyntheticItems } from './synthetic.ts';
import type { SourceRow } from './row.ts';

/** The largest seed. Seeds are 32-bit numbers. */
export const MAX_SEED = 2 ** 32 - 1;
/**
 * The maximum number of items. Each item is one second later than the one before, and an ObjectId has 32 bits
 * for the seconds.
 */
export const MAX_COUNT = 1_000_000_000;

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
