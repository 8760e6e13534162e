import type { Slots } from './slots.ts';
import type { RowReader } from './store.ts';

/**
 * The largest batch, in bytes, by the memory that all open batches hold or have requested together. The last entry
 * applies to any amount. A reply is up to a tenth larger than requested, and a slot is a power of two: these sizes fit
 * slots of 256 and 64 KiB.
 */
const SHARES = [
  { below: 16 << 20, bytes: Infinity },
  { below: 32 << 20, bytes: 224 * 1024 },
  { below: Infinity, bytes: 56 * 1024 },
];

/**
 * A reader for many streams at once: the more memory all batches take, the smaller the next batches are. A few streams
 * read in the batches that cost least. Hundreds of streams that all stall within a second hold two small batches each
 * until they release them, instead of two large ones whose memory the process would keep.
 */
export function memoryBudget(rows: RowReader, slots: Pick<Slots, 'held'>): RowReader {
  /** Bytes requested that have no slot yet. */
  let asked = 0;
  return {
    async read(plan, from, size, signal) {
      const bytes = Math.min(size.bytes, shareOf(slots.held + asked));
      asked += bytes;
      try {
        return await rows.read(plan, from, { ...size, bytes }, signal);
      } finally {
        asked -= bytes;
      }
    },
  };
}

/** The largest batch, in bytes, while all batches take this much memory. */
export function shareOf(taken: number): number {
  return SHARES.find(({ below }) => taken < below)?.bytes ?? 0;
}
