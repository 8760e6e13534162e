import type { TestContext } from 'node:test';
import type { Slots } from '../../../src/store/turns/slots.ts';

/** Returns a function that makes slots look for a new memory: many are taken and released, and time passes. */
export function newMemory(t: TestContext, slots: Slots): () => void {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  return () => {
    slots.take(9 << 20).release();
    t.mock.timers.tick(1_000);
    t.mock.timers.tick(1_000);
  };
}
