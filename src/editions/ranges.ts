import type { ChunkEntry } from '../base/edition/head.ts';
import type { Bookmark } from '../store/bookmark.ts';
import { comparePlaces } from '../store/values/order.ts';

/** The ids behind the bound of the range before, up to its own, inclusive. The last one has no end, whatever its bound. */
interface Range {
  /** Null: of the last one, when nothing of it was read. */
  readonly bound: Bookmark | null;
  /** Its rows. Null: they are not read, or not stored yet. */
  chunk: ChunkEntry | null;
  isDirty: boolean;
  /** The changes that made it dirty. */
  marks: number;
}

/**
 * All ids of a resource, divided at the bounds of chunks. A range that is clean has the rows of its chunk as of the place up to
 * which changes were marked. One that is dirty says only where ids lie: its rows are to be read.
 */
export class Ranges {
  readonly #all: Range[];

  /** Without chunks all ids are one range that is dirty. `isUnread`: only the bounds of the chunks are of use. */
  constructor(chunks: readonly ChunkEntry[], isEmpty = false) {
    this.#all = chunks.map((chunk) => ({ bound: boundOf(chunk), chunk, isDirty: false, marks: 0 }));
    if (chunks.length === 0) this.#all.push({ bound: null, chunk: null, isDirty: !isEmpty, marks: 0 });
  }

  /** The chunks in order. Every range must be clean. */
  get chunks(): readonly ChunkEntry[] {
    return this.#all.flatMap(({ chunk }) => chunk ?? []);
  }

  /** The chunks before the first range that is dirty. */
  get begun(): readonly ChunkEntry[] {
    const end = this.#all.findIndex(({ chunk }) => chunk === null);
    return (end < 0 ? this.#all : this.#all.slice(0, end)).flatMap(({ chunk }) => chunk ?? []);
  }

  /** The places in `begun` of those that are dirty. */
  get dirtyPlaces(): readonly number[] {
    return this.#all.flatMap(({ isDirty, chunk }, at) => (isDirty && chunk ? [at] : []));
  }

  /** Whether `begun` are all: the last of them then ends with the rows, and not with a bound. */
  get isWhole(): boolean {
    return this.#all.every(({ chunk }) => chunk !== null);
  }

  /** Marks the chunks of a walk that was interrupted that are dirty. If they are not all, a range without an end follows. */
  goOn(dirty: readonly number[], isWhole: boolean): void {
    for (const at of dirty) this.#soil(this.#all[at]);
    if (!isWhole) this.#all.push({ bound: null, chunk: null, isDirty: true, marks: 0 });
  }

  /** Notes that the row of a key changed. */
  mark(key: Bookmark): void {
    let low = 0;
    let high = this.#all.length - 1; // the last one has no end
    while (low < high) {
      const middle = (low + high) >> 1;
      const { bound = null } = this.#all[middle] ?? {};
      if (bound && comparePlaces(bound, key) < 0) low = middle + 1;
      else high = middle;
    }
    this.#soil(this.#all[low]);
  }

  /** The first range that is dirty, or, `unread`, that has no chunk. Null: there is none. */
  nextDirty(unread: boolean): Run | null {
    const at = this.#all.findIndex(({ isDirty, chunk }) => isDirty && (!unread || chunk === null));
    return at < 0 ? null : { at, after: this.#all[at - 1]?.bound ?? null };
  }

  /** About how many rows are to be read from a range to the next one that is clean. */
  rowsFrom(at: number): number {
    let rows = 0;
    for (let n = at; n < this.#all.length && (n === at || this.#all[n]?.isDirty); n++) {
      const { chunk = null, marks = 0 } = this.#all[n] ?? {};
      if (!chunk) return Infinity;
      rows += chunk.rows + marks;
    }
    return rows;
  }

  /**
   * Puts a chunk with its bound before the range `at`, in place of the ids that it has. Resolves the chunk when it is stored.
   * Returns whether a range follows that begins there and is clean.
   */
  insert(
    at: number,
    bound: Bookmark,
  ): { readonly store: (chunk: ChunkEntry) => void; readonly meetsClean: boolean } {
    let isAligned = false;
    let next = at;
    for (; next < this.#all.length - 1 && !isAligned; next++) {
      const { bound: end = null } = this.#all[next] ?? {};
      const order = end === null ? 1 : comparePlaces(end, bound);
      if (order > 0) break;
      isAligned = order === 0;
    }
    const made: Range = { bound, chunk: null, isDirty: false, marks: 0 };
    this.#all.splice(at, next - at, made);
    const rest = this.#all[at + 1];
    if (rest && !isAligned) {
      rest.isDirty = true;
      rest.chunk = null;
    }
    const store = (chunk: ChunkEntry) => {
      made.chunk = chunk;
    };
    return { store, meetsClean: isAligned && rest?.isDirty === false };
  }

  /** Notes that no rows follow behind the ranges before `at`. */
  end(at: number): void {
    this.#all.splice(at);
    if (at === 0) this.#all.push({ bound: null, chunk: null, isDirty: false, marks: 0 });
  }

  #soil(range: Range | undefined): void {
    if (!range) return;
    range.isDirty = true;
    range.marks++;
  }
}

/** Where reading begins: behind a bound. */
export interface Run {
  readonly at: number;
  readonly after: Bookmark | null;
}

function boundOf({ bound }: ChunkEntry): Bookmark {
  return new Uint8Array(Buffer.from(bound, 'base64url')) as Bookmark;
}
