import type { Batch } from '../batch.ts';
import { bookmarkOf, keyOf, makeBookmark } from '../bookmark.ts';
import type { Bookmark } from '../bookmark.ts';
import { isSameNumber } from './number.ts';
import { rowAt } from './reply.ts';
import type { Slots } from '../slots.ts';
import type { Plan, Size } from '../store.ts';

/** A batch in the making: rows of one reply, or of several when one did not bring enough. */
export class Gathering {
  readonly #plan: Pick<Plan, 'order'>;
  readonly #size: Size;
  readonly #parts: Buffer[] = [];
  #lastRow: Buffer | null = null;
  rows = 0;
  bytes = 0;

  constructor(plan: Pick<Plan, 'order'>, size: Size) {
    this.#plan = plan;
    this.#size = size;
  }

  get isFull(): boolean {
    return this.rows >= this.#size.rows || this.bytes >= this.#size.bytes;
  }

  get missing(): Size {
    return { rows: this.#size.rows - this.rows, bytes: this.#size.bytes - this.bytes };
  }

  get last(): Bookmark | null {
    return this.#lastRow && bookmarkOf(this.#lastRow, this.#plan);
  }

  /**
   * Takes rows until it is full. The first one is left out when it is the row of the bookmark that the range began at
   * (`min` is inclusive; whether that row is still there, only the reply tells). Says how many rows it has gone over, and
   * whether some are left.
   */
  take(reply: Buffer, bookmark?: Bookmark): { rows: number; left: boolean } {
    let start = 0;
    let rows = 0;
    if (bookmark && reply.length > 0) {
      const { document, end } = rowAt(reply, 0);
      if (isSameKey(bookmarkOf(reply.subarray(document, end), this.#plan), bookmark)) {
        start = end;
        rows = 1;
      }
    }
    const begin = start;
    while (start < reply.length && !this.isFull) {
      const { document, end } = rowAt(reply, start);
      this.#lastRow = reply.subarray(document, end);
      this.rows++;
      this.bytes += end - start;
      rows++;
      start = end;
    }
    if (start > begin) this.#parts.push(reply.subarray(begin, start));
    return { rows, left: start < reply.length };
  }

  /** The rows in a slot: the only copy made of them. */
  toBatch(slots: Slots, more: boolean): Batch {
    const slot = slots.take(this.bytes);
    const bytes = slot.bytes(this.bytes);
    let at = 0;
    for (const part of this.#parts) {
      bytes.set(part, at);
      at += part.length;
    }
    const release = () => slot.release();
    return { slot, start: 0, length: this.bytes, rows: this.rows, last: this.last, more, release };
  }
}

/**
 * Keys are the same when their bytes are, or when their values are, numbers by value: 1 and 1.0. A row that has the
 * bookmark's id and another price stands elsewhere in price order, and comes.
 */
function isSameKey(a: Bookmark, b: Bookmark): boolean {
  if (Buffer.compare(a, b) === 0) return true;
  const [left, right] = [keyOf(a), keyOf(b)];
  return isSameValue(left._id, right._id) && isSameValue(left.price, right.price);
}

function isSameValue(a: unknown, b: unknown): boolean {
  const bytes = (value: unknown) => makeBookmark({ _id: value });
  return isSameNumber(a, b) || Buffer.compare(bytes(a), bytes(b)) === 0;
}
