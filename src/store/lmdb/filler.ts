import { ROW_HEAD_BYTES, beginRow } from '../bson-array.ts';
import type { Slot, Slots } from '../slots.ts';
import type { Size } from '../store.ts';
import type { RowSink } from './tables.ts';

/** Expected size of a row in bytes before any was seen. Generated items have 205 bytes. */
const FIRST_GUESS = 256;

/**
 * The size of rows, learnt from those seen. Slots are taken to fit, so that few have to grow. Recent batches count
 * most.
 */
export class RowSize {
  #mean = FIRST_GUESS;

  /** The size of the slot for a batch in bytes, with an eighth to spare. */
  slotFor({ rows, bytes }: Size): number {
    return Math.ceil(Math.min(rows * this.#mean * 1.125, bytes + this.#mean));
  }

  learn(rows: number, bytes: number): void {
    if (rows > 0) this.#mean += (bytes / rows - this.#mean) / 4;
  }
}

/** Fills a slot with rows until the requested size is reached. Ignores rows that come afterwards. */
export class Filler implements RowSink {
  slot: Slot;
  rows = 0;
  length = 0;
  /** Byte offset of the last row's document. */
  lastAt = 0;
  readonly #slots: Slots;
  readonly #size: Size;
  #view: Uint8Array;

  constructor(slots: Slots, size: Size, expected: RowSize) {
    this.#slots = slots;
    this.#size = size;
    this.slot = slots.take(expected.slotFor(size));
    this.#view = this.slot.bytes(); // taken right before the look, which nothing interrupts; see #grow
  }

  get full(): boolean {
    return this.rows >= this.#size.rows || this.length >= this.#size.bytes;
  }

  row(document: Uint8Array): void {
    if (this.full) return;
    const needed = this.length + ROW_HEAD_BYTES + document.length;
    if (needed > this.slot.capacity) this.#grow(needed);
    this.lastAt = beginRow(this.#view, this.length);
    this.#view.set(document, this.lastAt);
    this.length = needed;
    this.rows++;
  }

  #grow(needed: number): void {
    const larger = this.#slots.take(Math.max(needed, 2 * this.slot.capacity));
    const view = larger.bytes();
    view.set(this.slot.bytes(this.length)); // a fresh view: `take` may have detached the old one
    this.slot.release();
    this.slot = larger;
    this.#view = view;
  }
}
