/**
 * The rows of a view as if all were there: blocks of them are read when they come into sight, and dropped again, so
 * that memory stays bounded however long the user scrolls.
 */
import { Refused } from './api.ts';
import type { Row } from './json.ts';
import type { Page, Reader, Total } from './reader.ts';
import { counted, isAbort } from './text.ts';

export const BLOCK = 100;
/** Blocks that are kept: those in sight, and those that were lately. */
const MOST_BLOCKS = 40;
/** Cursors that are kept, of about 100 bytes each: those of two million rows. */
const MOST_CURSORS = 20_000;
/** A block far from the cached ones is read after this number of milliseconds without another jump. */
const SETTLED_MS = 80;

export interface BlocksOptions {
  readonly reader: Reader;
  /** About how many rows there are. Undefined: unknown. */
  readonly expected: number | undefined;
  /** Rows came or the number of rows changed. */
  readonly changed: () => void;
  readonly failed: (error: unknown) => void;
  /** The first block, where the table begins inside the set. */
  readonly first?: Page;
}

export class Blocks {
  readonly #options: BlocksOptions;
  readonly #blocks = new Map<number, readonly Row[]>();
  /** The cursor that each block begins after. */
  readonly #cursors = new Map<number, string>();
  readonly #loading = new Map<number, AbortController>();
  #wanted: readonly number[] = [];
  #settled: ReturnType<typeof setTimeout> | undefined;
  #total: Total;
  #isClosed = false;

  constructor(options: BlocksOptions) {
    this.#options = options;
    const { expected, first } = options;
    this.#total = { rows: expected ?? BLOCK, is: expected === undefined || first ? 'atLeast' : 'estimated' };
    if (first) this.#keep(0, first);
  }

  get total(): Total {
    return this.#total;
  }

  /** Whether the table begins inside the set, so that its rows have no known numbers. */
  get beginsInside(): boolean {
    return this.#options.first !== undefined;
  }

  row(index: number): Row | undefined {
    return this.#blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK];
  }

  /** The rows that are in memory, by number. */
  *rows(): Generator<readonly [index: number, row: Row]> {
    for (const [block, rows] of this.#blocks)
      for (const [at, row] of rows.entries()) yield [block * BLOCK + at, row];
  }

  /** A count of the rows. One that is not exact replaces no exact one, unless rows changed since (`isNew`). */
  counted(total: Total, isNew = false): void {
    if (!isNew && this.#total.is === 'exact' && total.is !== 'exact') return;
    this.#total = total;
    this.#options.changed();
  }

  /** Reads the rows from `first` to `last` unless they are there, and gives up the reading of others. */
  need(first: number, last: number): void {
    if (this.#isClosed) return;
    const from = Math.floor(Math.max(0, first) / BLOCK);
    const to = Math.floor(Math.max(0, Math.min(last, this.#total.rows - 1)) / BLOCK);
    this.#wanted = Array.from({ length: to - from + 1 }, (_, n) => from + n);
    for (const [block, leave] of this.#loading) {
      if (this.#wanted.includes(block)) continue;
      leave.abort();
      this.#loading.delete(block);
    }
    clearTimeout(this.#settled);
    const isNear = this.#wanted.some((block) => this.#isReachable(block));
    if (isNear) this.#readWanted();
    else this.#settled = setTimeout(() => this.#readWanted(), SETTLED_MS);
  }

  /** Forgets all rows but not their cursors, and reads those in sight again. */
  refresh(): void {
    if (this.#isClosed) return;
    for (const block of this.#blocks.keys()) if (!this.#wanted.includes(block)) this.#blocks.delete(block);
    for (const block of this.#wanted) this.#read(block);
  }

  /** Replaces a row that is in memory. */
  replace(index: number, row: Row): void {
    const block = Math.floor(index / BLOCK);
    const rows = this.#blocks.get(block);
    if (rows) this.#blocks.set(block, rows.with(index % BLOCK, row));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#settled);
    for (const leave of this.#loading.values()) leave.abort();
  }

  #isReachable(block: number): boolean {
    return block === 0 || this.#blocks.has(block) || this.#cursors.has(block) || this.#blocks.has(block - 1);
  }

  /** A block whose predecessor is being read waits for the cursor that this brings. */
  #readWanted(): void {
    for (const block of this.#wanted) {
      const isComing =
        this.#loading.has(block) || (this.#loading.has(block - 1) && !this.#cursors.has(block));
      if (!isComing && !this.#blocks.has(block)) this.#read(block);
    }
  }

  #read(block: number): void {
    this.#loading.get(block)?.abort();
    const leave = new AbortController();
    this.#loading.set(block, leave);
    const read = async () => {
      try {
        const page = await this.#pageOf(block, leave.signal);
        if (this.#isClosed || leave.signal.aborted) return;
        this.#keep(block, page);
        this.#loading.delete(block);
        this.#options.changed();
        this.#readWanted();
      } catch (error) {
        if (!isAbort(error) && !this.#isClosed) this.#options.failed(error);
      } finally {
        if (this.#loading.get(block) === leave) this.#loading.delete(block);
      }
    };
    void read();
  }

  async #pageOf(block: number, signal: AbortSignal): Promise<Page> {
    const { reader, first } = this.#options;
    const cursor = this.#cursors.get(block);
    if (cursor !== undefined) return reader.read({ cursor }, BLOCK, signal);
    if (first && block === 0) return first;
    try {
      return await reader.read({ offset: block * BLOCK }, BLOCK, signal);
    } catch (error) {
      if (!(error instanceof Refused) || error.code !== 'offset-too-deep') throw error;
      return this.#fromEnd(block, error, signal);
    }
  }

  /** The server finds rows by number only near the beginning. Near the end, they are counted from there. */
  async #fromEnd(block: number, error: Refused, signal: AbortSignal): Promise<Page> {
    const { rows, is } = this.#total;
    const behind = Math.max(0, rows - (block + 1) * BLOCK);
    if (is !== 'exact' || behind > block * BLOCK) throw deepError(block, error);
    try {
      return await this.#options.reader.readFromEnd(behind, Math.min(BLOCK, rows - block * BLOCK), signal);
    } catch (again) {
      throw again instanceof Refused && again.code === 'offset-too-deep' ? deepError(block, again) : again;
    }
  }

  #keep(block: number, { rows, next, hasMore }: Page): void {
    this.#blocks.delete(block);
    this.#blocks.set(block, rows);
    if (next !== null && hasMore) this.#cursors.set(block + 1, next);
    for (const old of this.#blocks.keys()) {
      if (this.#blocks.size <= MOST_BLOCKS) break;
      if (!this.#wanted.includes(old)) this.#blocks.delete(old);
    }
    for (const old of this.#cursors.keys()) {
      if (this.#cursors.size <= MOST_CURSORS) break;
      this.#cursors.delete(old);
    }
    const reached = block * BLOCK + rows.length;
    // An empty block behind the end says only that there are fewer rows than thought.
    if (!hasMore && (rows.length > 0 || block === 0)) this.#total = { rows: reached, is: 'exact' };
    else if (!hasMore) this.#total = { rows: Math.min(this.#total.rows, reached), is: 'atLeast' };
    else if (this.#total.rows <= reached) this.#total = { rows: reached + BLOCK, is: 'atLeast' };
  }
}

function deepError(block: number, { message }: Refused): Error {
  return new Error(
    `Row ${counted(block * BLOCK + 1)} is too deep to be found by its number. Jump to a key, or scroll there. The server says: ${message}`,
  );
}
