import type { Slots } from './slots.ts';
import type { ChainReader } from './store.ts';

/**
 * What a batch may have while all others hold, or have asked for, less than so many bytes; the last one is never passed. A
 * reply is up to a tenth larger than asked for, and a slot a power of two: these fit 256 and 64 KiB.
 */
const SHARES = [
  { below: 16 << 20, bytes: Infinity },
  { below: 32 << 20, bytes: 224 * 1024 },
  { below: Infinity, bytes: 56 * 1024 },
];

/**
 * A reader for many at once: the more memory batches take in all, the smaller those that are read next. A few streams read
 * in batches that cost least; hundreds that all stall within a second cost two small batches each until they give them
 * back, and not two large ones, whose memory the process would keep.
 */
export function memoryBudget(rows: ChainReader, slots: Pick<Slots, 'held'>): ChainReader {
  /** Bytes on their way, which have no slot yet. */
  let asked = 0;
  return {
    confirm: (...call) => rows.confirm(...call),
    async read(plan, from, size, signal) {
      const taken = slots.held + asked;
      const share = SHARES.find(({ below }) => taken < below)?.bytes ?? 0;
      const bytes = Math.min(size.bytes, share);
      asked += bytes;
      try {
        return await rows.read(plan, from, { ...size, bytes }, signal);
      } finally {
        asked -= bytes;
      }
    },
  };
}
