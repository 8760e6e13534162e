import { SyntheticItems } from './synthetic.ts';
import type { SourceRow } from './row.ts';

/** Seeds are 32-bit numbers. */
export const MAX_SEED = 2 ** 32 - 1;
/** So many seconds from the first row's on still fit into the 32 bits that an ObjectId has for them. */
export const MAX_COUNT = 1_000_000_000;

/**
 * `count` synthetic items, the same for a seed every time, and those of a smaller count the first of a larger one. Their
 * ids are ObjectIds in ascending order that hold the seed, so sets of different seeds do not meet. About 205 bytes of
 * BSON each.
 */
// eslint-disable-next-line @typescript-eslint/require-await -- a source is asynchronous; this one has nothing to wait for
export async function* generateItems(count: number, seed: number): AsyncGenerator<SourceRow> {
  const items = new SyntheticItems(seed);
  for (let at = 1; at <= count; at++) yield { at, item: items.next() };
}
