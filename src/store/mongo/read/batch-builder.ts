import type { Batch } from '../../batch.ts';
import { bookmarkOf, type Bookmark, type Identity, type RowOrder } from '../../bookmark.ts';
import { documentAt, endOfDocument, endOfRow } from '../../values/bson-array.ts';
import { comparePlaces } from '../../values/order.ts';
import { translate } from '../errors.ts';
import type { Reply } from '../lane/lane.ts';
import type { Slot, Slots } from '../../turns/slots.ts';
import type { PointInTime, Size } from '../../store.ts';

/** A slot of more than LARGE bytes and WASTEFUL times its rows is not kept: few rows of a large reply were wanted. */
const LARGE = 64 * 1024;
const WASTEFUL = 4;

interface Part {
  readonly slot: Slot;
  readonly start: number;
  readonly length: number;
}

/** A batch in the making: the rows of one reply, or of several when one did not bring enough. It owns their slots. */
export class BatchBuilder {
  readonly #plan: RowOrder;
  readonly #size: Size;
  readonly #parts: Part[] = [];
  last: Bookmark | null = null;
  rows = 0;
  bytes = 0;
  /** The time of the last reply. No reply is of an earlier time than the one before it. */
  #asOf: PointInTime | undefined;

  constructor(plan: RowOrder, size: Size) {
    this.#plan = plan;
    this.#size = size;
  }

  get isFull(): boolean {
    return this.rows >= this.#size.rows || this.bytes >= this.#size.bytes;
  }

  get missing(): Size {
    return { rows: this.#size.rows - this.rows, bytes: this.#size.bytes - this.bytes };
  }

  /**
   * Takes over a reply, and takes rows from it until the batch is full. Leaves out the first row when it is the row of
   * the bookmark that the range began at. (`min` is inclusive, and only the reply shows whether that row still
   * exists.) `loose`, the direction of the plan: also when it is another row that is not beyond the bookmark. Returns
   * how many rows it has passed, and whether some are left.
   */
  take(
    { slot, start, length, asOf }: Reply,
    bookmark?: Bookmark,
    loose?: 1 | -1,
  ): { rows: number; left: boolean } {
    this.#asOf = asOf;
    try {
      const bytes = slot.bytes(start + length).subarray(start);
      const begin = bookmark && length > 0 && this.#isRowOf(bookmark, bytes, loose) ? endOfRow(bytes, 0) : 0;
      const before = this.rows;
      const end = this.#takeRows(bytes, begin);
      if (end > begin) this.#parts.push({ slot, start: start + begin, length: end - begin });
      else slot.release();
      return { rows: this.rows - before + (begin > 0 ? 1 : 0), left: end < length };
    } catch (error) {
      slot.release();
      throw translate(error); // the reply is damaged
    }
  }

  /** The rows as a batch, nearly always in the slot of their reply, without a copy. Ends the builder. */
  toBatch(slots: Slots, more: boolean, identity?: Identity): Batch {
    const { slot, start, length } = this.#join(slots);
    const release = () => slot.release();
    const { rows, last } = this;
    const asOf = this.#asOf;
    return {
      slot,
      start,
      length,
      rows,
      last,
      more,
      release,
      ...(asOf !== undefined && { asOf }),
      ...(identity !== undefined && { identity }),
    };
  }

  release(): void {
    for (const { slot } of this.#parts.splice(0)) slot.release();
  }

  /** Returns where the batch is full. It passes millions of rows a second, so it allocates nothing per row. */
  #takeRows(bytes: Uint8Array, begin: number): number {
    let end = begin;
    let document = -1;
    while (end < bytes.length && !this.isFull) {
      document = documentAt(bytes, end);
      const next = endOfDocument(bytes, document);
      this.rows++;
      this.bytes += next - end;
      end = next;
    }
    if (document >= 0) this.last = bookmarkOf(bytes.subarray(document, end), this.#plan);
    return end;
  }

  #isRowOf(bookmark: Bookmark, bytes: Uint8Array, loose: 1 | -1 | undefined): boolean {
    const row = bookmarkOf(bytes.subarray(documentAt(bytes, 0), endOfRow(bytes, 0)), this.#plan);
    // A row with the bookmark's id and another sort value has another place, so it is part of the batch.
    const order = comparePlaces(row, bookmark);
    return order === 0 || (loose !== undefined && order * loose < 0);
  }

  #join(slots: Slots): Part {
    const [only] = this.#parts;
    const isWasteful = (only?.slot.capacity ?? 0) > Math.max(LARGE, WASTEFUL * this.bytes);
    if (only && this.#parts.length === 1 && !isWasteful) return only;
    const slot = slots.take(this.bytes);
    const bytes = slot.bytes(this.bytes); // only now: `take` may have detached older views
    let at = 0;
    for (const part of this.#parts) {
      bytes.set(part.slot.bytes(part.start + part.length).subarray(part.start), at);
      at += part.length;
    }
    this.release();
    return { slot, start: 0, length: this.bytes };
  }
}
