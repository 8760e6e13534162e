/** Reads only as fast as wanted. What is not read waits in buffers, and then the server waits, too. */
export class Pace {
  readonly #rowsPerSecond: number;
  #due = performance.now();

  /** Infinity: as fast as the rows come. */
  constructor(rowsPerSecond: number) {
    this.#rowsPerSecond = rowsPerSecond;
  }

  /** Resolves when so many more rows may have been read. */
  async after(rows: number): Promise<void> {
    if (this.#rowsPerSecond === Infinity) return;
    this.#due = Math.max(performance.now() - 50, this.#due) + (rows * 1000) / this.#rowsPerSecond;
    const wait = this.#due - performance.now();
    if (wait > 5) await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
