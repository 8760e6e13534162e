import { setImmediate as nextTurn } from 'node:timers/promises';

/** Work that runs again and again. */
interface Repeated {
  /** Resolves when the work holds what is asked. Rejects when it fails. */
  until(holds: () => boolean): Promise<void>;
  /** Resolves when the last run has ended. Rejects when one has failed. */
  end(): Promise<void>;
}

/** Runs work again and again until it is ended. */
export function again(work: () => Promise<void>): Repeated {
  const state = { isOver: false };
  const running = (async () => {
    while (!state.isOver) {
      await work();
      await nextTurn();
    }
  })();
  running.catch(() => undefined); // `until` and `end` reject
  return {
    until: async (holds) => {
      while (!holds()) await Promise.race([nextTurn(), running]);
    },
    end: () => {
      state.isOver = true;
      return running;
    },
  };
}
