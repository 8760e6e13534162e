/** How long looks may run in a row before other work of the process gets its turn. */
const TURN_MILLISECONDS = 4;

/**
 * Looks at the embedded store are synchronous, and only the event loop itself slows a fast reader down. So looks queue
 * up and run from setImmediate. After at most 4 ms (plus the look under way) the loop continues with sockets and
 * timers. Looks of two kinds take turns while there are both: urgent ones that a client waits for, and patient ones of
 * streams under way. Each kind is served first come, first served. So a page waits for the pages before it and as many
 * looks of streams, even when hundreds of streams fill their sockets' buffers. Pages do not keep streams from going
 * on.
 *
 * A queue of promises cannot run several looks in one step of the loop and stop by the clock. These take 2.5 µs each when
 * many wait.
 */
export class FairScheduler {
  readonly #urgent: (() => void)[] = [];
  readonly #patient: (() => void)[] = [];
  #patientNext = false;
  #isAsked = false;
  readonly #now: () => number;

  /** `now` is a clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Runs `look` when its turn comes and resolves with its result. Rejects with the signal's reason when the signal is
   * aborted by then.
   */
  take<T>(look: () => T, signal: AbortSignal, patient = false): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail: (reason: unknown) => void = reject;
      (patient ? this.#patient : this.#urgent).push(() => {
        try {
          signal.throwIfAborted();
          resolve(look());
        } catch (error) {
          fail(error);
        }
      });
      this.#ask();
    });
  }

  #ask(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    setImmediate(this.#run);
  }

  #next(): (() => void) | undefined {
    const [first, second] = this.#patientNext ? [this.#patient, this.#urgent] : [this.#urgent, this.#patient];
    this.#patientNext = !this.#patientNext;
    return first.shift() ?? second.shift();
  }

  #hasMore(): boolean {
    return this.#urgent.length + this.#patient.length > 0;
  }

  readonly #run = (): void => {
    const end = this.#now() + TURN_MILLISECONDS;
    do this.#next()?.();
    while (this.#hasMore() && this.#now() < end);
    this.#isAsked = false;
    if (this.#hasMore()) this.#ask();
  };
}
