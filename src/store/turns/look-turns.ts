/** How long looks may run in a row before other work of the process gets its turn. Milliseconds. */
const TURN_MS = 4;

/**
 * Turns of short synchronous looks. Only the event loop itself slows a fast reader down, so looks queue up and run from
 * setImmediate. After at most 4 ms (plus the look under way) the loop continues with sockets and timers. Looks of two kinds
 * take turns while there are both: urgent ones that a client waits for, and patient ones of streams under way. Each kind is
 * served first come, first served. So a page waits for the pages before it and as many looks of streams, even when hundreds
 * of streams fill their sockets' buffers.
 *
 * LoopTurns does so for work that goes on behind a promise. Here one step of the loop runs several looks and stops by the
 * clock, which takes 2.5 µs a look when many wait.
 */
export class LookTurns {
  readonly #now: () => number;
  readonly #urgent: (() => void)[] = [];
  readonly #patient: (() => void)[] = [];
  #isPatientNext = false;
  #isAsked = false;

  /** `now` is a clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Runs a look when its turn comes, and resolves with its result. Rejects with the signal's reason when it is aborted by then. */
  take<T>(look: () => T, signal: AbortSignal, isPatient = false): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail: (reason: unknown) => void = reject;
      (isPatient ? this.#patient : this.#urgent).push(() => {
        try {
          signal.throwIfAborted();
          resolve(look());
        } catch (error) {
          fail(error);
        }
      });
      if (!this.#isAsked) setImmediate(this.#run);
      this.#isAsked = true;
    });
  }

  readonly #run = (): void => {
    const end = this.#now() + TURN_MS;
    do {
      const first = this.#isPatientNext ? this.#patient : this.#urgent;
      const second = this.#isPatientNext ? this.#urgent : this.#patient;
      this.#isPatientNext = !this.#isPatientNext;
      (first.shift() ?? second.shift())?.();
      this.#isAsked = this.#urgent.length + this.#patient.length > 0;
    } while (this.#isAsked && this.#now() < end);
    if (this.#isAsked) setImmediate(this.#run);
  };
}
