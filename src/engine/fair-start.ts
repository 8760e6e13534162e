import { LoopTurns } from '../store/loop-turns.ts';

/**
 * The requests that begin in one turn of the event loop as soon as they are read. A connection can send thousands in one
 * packet, and a page of 1,000 rows takes 2 ms.
 */
const AT_ONCE = 16;

/** Begins requests so that a burst of them on one connection keeps those of others waiting for a few only. */
export class FairStart {
  readonly #turns = new LoopTurns();
  #begun = 0;

  /** Calls `begin` now, or in a later turn of the event loop when many requests came in this one. */
  run(begin: () => void): void {
    if (this.#begun === 0) setImmediate(() => (this.#begun = 0));
    this.#begun++;
    if (this.#begun <= AT_ONCE) begin();
    else void this.#turns.next().then(begin);
  }
}
