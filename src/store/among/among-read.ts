import { storeUnavailable } from '../../base/errors.ts';
import type { ReadBatch } from '../batch.ts';
import type { Bookmark } from '../bookmark.ts';
import type { AmongValues } from '../plan.ts';
import type { Collection, From, Plan, Size } from '../store.ts';
import type { Slots } from '../turns/slots.ts';
import { placeAmong, stretchesOf, withoutValue, withValue, type Stretch } from './among-plans.ts';

/** The read that shows whether rows follow. */
const ONE: Size = { rows: 1, bytes: 1 };

/**
 * One read of a plan with several values: the stretches from its bookmark's on, until the batch is full and it is known
 * whether rows follow. All of them see the collection of the first one, and no earlier time.
 */
export class AmongRead {
  readonly #rows: Pick<Collection, 'read' | 'count'>;
  readonly #slots: Slots;
  readonly #plan: Plan & { readonly among: AmongValues };
  readonly #signal: AbortSignal;
  /** The batches that have rows, or an empty one in their place. */
  #parts: ReadBatch[] = [];
  /** The proofs of all stretches that were read, also of those without rows: these must have none. */
  readonly #proofs: ReadBatch['confirm'][] = [];
  #first: Pick<ReadBatch, 'asOf' | 'identity'> | null = null;
  #last: Bookmark | null = null;
  #count = 0;
  #bytes = 0;
  #skip = 0;

  constructor(
    rows: Pick<Collection, 'read' | 'count'>,
    slots: Slots,
    plan: Plan & { readonly among: AmongValues },
    signal: AbortSignal,
  ) {
    this.#rows = rows;
    this.#slots = slots;
    this.#plan = plan;
    this.#signal = signal;
  }

  /** The batch. The bookmark has one of the plan's values. */
  async read({ after, skip = 0 }: From, size: Size): Promise<ReadBatch> {
    const stretches = stretchesOf(this.#plan);
    const at = after ? placeAmong(this.#plan.among, after) : 0;
    if (at < 0) throw new TypeError('a bookmark has none of the values of its plan');
    this.#skip = skip;
    let more = false;
    try {
      for (const [n, stretch] of stretches.slice(at).entries()) {
        const from = n === 0 && after ? { after: withoutValue(after, stretch.plan) } : { skip: this.#skip };
        more = await this.#take(stretch, from, size);
        if (more) break;
      }
      return this.#joined(more);
    } catch (error) {
      for (const part of this.#parts) part.release();
      throw error;
    }
  }

  /** Reads a stretch. Returns whether rows follow those that were taken. */
  async #take(stretch: Stretch, from: From, size: Size): Promise<boolean> {
    const isFull = this.#count >= size.rows || this.#bytes >= size.bytes;
    const left = { ...size, rows: size.rows - this.#count, bytes: size.bytes - this.#bytes };
    const plan = this.#bound(stretch.plan);
    const batch = await this.#rows.read(plan, from, isFull ? ONE : left, this.#signal);
    this.#first ??= batch;
    if (isFull && batch.rows > 0) {
      batch.release();
      return true;
    }
    this.#proofs.push((signal) => batch.confirm(signal));
    this.#keep(batch, stretch);
    if (batch.rows > 0) this.#skip = 0;
    else if (this.#skip > 0) {
      // The stretch has no more rows than were skipped, so they are soon counted.
      const { rows, is } = await this.#rows.count(plan, 'exact', this.#signal);
      if (is !== 'exact') throw storeUnavailable(new Error('the rows to skip could not be counted in time'));
      this.#skip -= Math.min(rows, this.#skip);
    }
    return batch.more;
  }

  /** One empty batch is enough, and only where no other has rows. */
  #keep(batch: ReadBatch, { value }: Stretch): void {
    if (batch.rows === 0 && this.#parts.length > 0) {
      batch.release();
      return;
    }
    const [before] = this.#parts;
    if (before?.rows === 0) {
      before.release();
      this.#parts = [];
    }
    this.#parts.push(batch);
    this.#count += batch.rows;
    this.#bytes += batch.length;
    if (batch.last) this.#last = withValue(batch.last, value);
  }

  /** A plan for what is read behind the first batch: see `Plan.since` and `Plan.identity`. */
  #bound(plan: Plan): Plan {
    const { since = this.#first?.asOf, identity = this.#first?.identity } = plan;
    return { ...plan, ...(since !== undefined && { since }), ...(identity !== undefined && { identity }) };
  }

  #joined(more: boolean): ReadBatch {
    const { asOf, identity } = this.#first ?? {};
    return {
      ...this.#memory(),
      rows: this.#count,
      last: this.#last,
      more,
      ...(asOf !== undefined && { asOf }),
      ...(identity !== undefined && { identity }),
      confirm: async (signal) => {
        await Promise.all(this.#proofs.map((proof) => proof(signal)));
      },
    };
  }

  /** Where the rows lie: those of one stretch where the store put them, others in a slot of their own. */
  #memory(): Pick<ReadBatch, 'slot' | 'start' | 'length' | 'release'> {
    const [only, ...others] = this.#parts;
    if (!only) throw new TypeError('a plan without values');
    if (others.length === 0) {
      const { slot, start, length } = only;
      return { slot, start, length, release: () => only.release() };
    }
    const slot = this.#slots.take(this.#bytes);
    const bytes = slot.bytes(this.#bytes); // only now: `take` may have detached older views
    let at = 0;
    for (const part of this.#parts.splice(0)) {
      bytes.set(part.slot.bytes(part.start + part.length).subarray(part.start), at);
      at += part.length;
      part.release();
    }
    return { slot, start: 0, length: at, release: () => slot.release() };
  }
}
