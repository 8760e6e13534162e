import type { EditionHead } from '../base/edition/head.ts';

/** What is known of the editions of a resource, for the metrics. The counts are those of this process. */
interface EditionCounts {
  /** The newest one. Null: there is none yet. */
  head: EditionHead | null;
  /** Chunks that were read again or for the first time, and those of them that were new. */
  read: number;
  stored: number;
  failures: number;
}

/** Counts the editions that a process makes. */
export class EditionMeter {
  readonly #all = new Map<string, EditionCounts>();

  /** By the names of resources. */
  get counts(): ReadonlyMap<string, Readonly<EditionCounts>> {
    return this.#all;
  }

  of(resource: string): EditionCounts {
    const known = this.#all.get(resource) ?? { head: null, read: 0, stored: 0, failures: 0 };
    this.#all.set(resource, known);
    return known;
  }
}
