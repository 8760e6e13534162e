import type { Finding } from '../base/finding.ts';
import { clipped, printable } from './text.ts';

interface FindingsOptions {
  /** The mark of a promise that could not be seen. */
  readonly unseen: 'warn' | 'skip';
  /** The most characters of a finding: a server may send megabytes. All, by default. */
  readonly longest?: number;
}

/** Prints findings as they come, one a line behind its mark, and how many promises do not hold. */
export class Findings {
  readonly #stdout: NodeJS.WritableStream;
  readonly #unseen: string;
  readonly #longest: number;
  #failed = 0;

  constructor(stdout: NodeJS.WritableStream, { unseen, longest = Infinity }: FindingsOptions) {
    this.#stdout = stdout;
    this.#unseen = unseen;
    this.#longest = longest;
  }

  /** Prints a finding. It is bound, so that it can be handed on. */
  readonly report = ({ promise, holds, seen }: Finding): void => {
    if (holds === false) this.#failed++;
    const mark = holds === null ? this.#unseen : holds ? 'ok  ' : 'FAIL';
    this.#stdout.write(`${mark}  ${printable(clipped(`${promise} - ${seen}`, this.#longest))}\n`);
  };

  /** Prints the last line. Returns the exit code. */
  end(): 0 | 1 {
    const failed = this.#failed;
    const last = failed === 0 ? 'every promise that was seen holds' : `promises that do not hold: ${failed}`;
    this.#stdout.write(`${last}\n`);
    return failed === 0 ? 0 : 1;
  }
}
