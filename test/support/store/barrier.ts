import { EventEmitter, once } from 'node:events';
import { aroundItems } from './with-items.ts';
import { keyOf } from '../../../src/store/bookmark.ts';
import type { From, Plan, Store } from '../../../src/store/store.ts';

/**
 * The number of rows in a batch, whatever was requested. A walk of a few hundred rows then has many points at
 * which it can be upset.
 */
export const BATCH_ROWS = 25;

/**
 * A barrier between a store and a server. Batches are small, and every walk over the items stops before a
 * read that would continue behind a row, until it is released. Ids are integers from 0 on, and so are prices,
 * in the same order.
 */
export class Barrier {
  #holds: ((after: number, plan: Plan) => boolean) | null = null;
  #waiting: (() => void)[] = [];
  readonly #arrived = new EventEmitter();

  /** Makes all further reads wait for which `holds` returns true. */
  hold(holds: (after: number, plan: Plan) => boolean): void {
    this.#holds = holds;
  }

  /** Resolves when `count` reads wait. */
  async held(count: number): Promise<void> {
    while (this.#waiting.length < count) await once(this.#arrived, 'arrived');
  }

  release(): void {
    this.#holds = null;
    for (const go of this.#waiting.splice(0)) go();
  }

  tap(store: Store): Store {
    return aroundItems(store, (items) => ({
      read: async (plan, from, size, signal) => {
        await this.#pass(plan, from);
        return items.read(plan, from, { ...size, rows: Math.min(size.rows, BATCH_ROWS) }, signal);
      },
    }));
  }

  async #pass(plan: Plan, { after }: From): Promise<void> {
    const key = after && keyOf(after)._id;
    if (!key || !this.#holds?.(Number(key), plan)) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      this.#arrived.emit('arrived');
    });
  }
}
