import type { ReadBatch } from '../batch.ts';
import type { Bookmark } from '../bookmark.ts';
import type { ChangeFeed } from '../change-feed.ts';
import type { AmongValues } from '../plan.ts';
import type { Collection, Count, CountMode, From, Plan, Size } from '../store.ts';
import type { Slots } from '../turns/slots.ts';
import { AmongRead } from './among-read.ts';
import { stretchesOf } from './among-plans.ts';
import { splitStretches } from './among-split.ts';

/** When counting stretch after stretch ends. Milliseconds. */
const COUNT_LIMIT_MS: Readonly<Record<CountMode, number>> = { estimated: 100, exact: 2_000 };

type AmongPlan = Plan & { readonly among: AmongValues };

/**
 * The rows of a collection, also by plans with several values of a field (`Plan.among`), of which the reads of the stores
 * know nothing: each value is a plan of its own, and these are read, counted and split one after another.
 */
export class AmongCollection implements Collection {
  readonly #rows: Collection;
  readonly #slots: Slots;

  constructor(rows: Collection, slots: Slots) {
    this.#rows = rows;
    this.#slots = slots;
  }

  get changes(): ChangeFeed | undefined {
    return this.#rows.changes;
  }

  /** Absent where the rows have none. */
  get snapshot(): Collection['snapshot'] {
    return this.#rows.snapshot;
  }

  read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<ReadBatch> {
    if (!isAmong(plan)) return this.#rows.read(plan, from, size, signal);
    return new AmongRead(this.#rows, this.#slots, plan, signal).read(from, size);
  }

  async count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    if (!isAmong(plan)) return this.#rows.count(plan, mode, signal);
    const end = performance.now() + COUNT_LIMIT_MS[mode];
    let rows = 0;
    for (const stretch of stretchesOf(plan)) {
      if (performance.now() > end) return { rows, is: 'atLeast' };
      const count = await this.#rows.count(stretch.plan, mode, signal);
      rows += count.rows;
      if (count.is !== 'exact') return { rows, is: 'atLeast' };
    }
    return { rows, is: 'exact' };
  }

  split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]> {
    if (!isAmong(plan)) return this.#rows.split(plan, parts, signal);
    return splitStretches(this.#rows, stretchesOf(plan), parts, signal);
  }

  nextValue(...call: Parameters<Collection['nextValue']>) {
    return this.#rows.nextValue(...call);
  }

  describe(...call: Parameters<Collection['describe']>) {
    return this.#rows.describe(...call);
  }
}

function isAmong(plan: Plan): plan is AmongPlan {
  return plan.among !== undefined;
}
