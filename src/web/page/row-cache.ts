/** The rows of a view, in blocks that are read when they come into sight, and dropped to bound memory. */
import { Refusal } from './api.ts';
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

interface BlocksOptions {
  readonly reader: Reader;
  /** About how many rows there are. Undefined: unknown. */
  readonly expected: number | undefined;
  /** Rows came or the number of rows changed. */
  readonly changed: () => void;
  readonly failed: (error: unknown) => void;
  /** The first block, where the table begins inside the set. */
  readonly first: Page | undefined;
}

export class Blocks {
  readonly #options: BlocksOptions;
  readonly #blocks = new Map<number, readonly Row[]>();
  /** The cursor that each block begins after. */
  readonly #cursors = new Map<number, string>();
  readonly #loading = new Map<number, AbortController>();
  #wanted: readonly number[] = [];
  #settled: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;
  #total: Total;

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

  /** All rows that are here. */
  rows(): readonly Row[] {
    return [...this.#blocks.values()].flat();
  }

  /** Counts the rows of a table that begins with the set. Only `isNew` lets an estimate replace an exact count. */
  async count(signal: AbortSignal, isNew = false): Promise<void> {
    const count = this.beginsInside ? null : await this.#options.reader.count(signal);
    if (!count || (!isNew && this.#total.is === 'exact' && count.is !== 'exact')) return;
    this.#total = count;
    this.#options.changed();
  }

  /** Reads the rows from `from` to `to` unless they are there, and gives up the reading of others. */
  need(from: number, to: number): void {
    if (this.#isClosed) return;
    const begin = Math.floor(Math.max(0, from) / BLOCK);
    const end = Math.floor(Math.max(0, Math.min(to, this.#total.rows - 1)) / BLOCK);
    this.#wanted = Array.from({ length: end - begin + 1 }, (_, n) => begin + n);
    for (const [block, leave] of this.#loading) {
      if (this.#wanted.includes(block)) continue;
      leave.abort();
      this.#loading.delete(block);
    }
    clearTimeout(this.#settled);
    if (this.#wanted.some((block) => this.#isReachable(block))) this.#readWanted();
    else this.#settled = setTimeout(() => this.#readWanted(), SETTLED_MS);
  }

  /** Forgets all rows but not their cursors, and reads those in sight again. */
  refresh(): void {
    if (this.#isClosed) return;
    for (const block of this.#blocks.keys()) if (!this.#wanted.includes(block)) this.#blocks.delete(block);
    for (const block of this.#wanted) void this.#read(block);
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
      const waits = this.#loading.has(block - 1) && !this.#cursors.has(block);
      if (!waits && !this.#loading.has(block) && !this.#blocks.has(block)) void this.#read(block);
    }
  }

  async #read(block: number): Promise<void> {
    this.#loading.get(block)?.abort();
    const leave = new AbortController();
    this.#loading.set(block, leave);
    const { changed, failed } = this.#options;
    try {
      const page = await this.#pageOf(block, leave.signal);
      if (this.#isClosed || leave.signal.aborted) return;
      this.#keep(block, page);
      this.#loading.delete(block);
      changed();
      this.#readWanted();
    } catch (error) {
      if (!isAbort(error) && !this.#isClosed) failed(isTooDeep(error) ? deepError(block, error) : error);
    } finally {
      if (this.#loading.get(block) === leave) this.#loading.delete(block);
    }
  }

  async #pageOf(block: number, signal: AbortSignal): Promise<Page> {
    const { reader, first } = this.#options;
    const cursor = this.#cursors.get(block);
    if (cursor !== undefined) return reader.read({ cursor }, BLOCK, signal);
    if (first && block === 0) return first;
    try {
      return await reader.read(block === 0 ? {} : { offset: block * BLOCK }, BLOCK, signal);
    } catch (error) {
      // The server finds rows by number only near the beginning. Near the end, they are counted from there.
      const { rows, is } = this.#total;
      const behind = Math.max(0, rows - (block + 1) * BLOCK);
      if (!isTooDeep(error) || is !== 'exact' || behind > block * BLOCK) throw error;
      return reader.readFromEnd(behind, Math.min(BLOCK, rows - block * BLOCK), signal);
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
    const { rows: before } = this.#total;
    // An empty block behind the end says only that there are fewer rows than thought.
    if (!hasMore && (rows.length > 0 || block === 0)) this.#total = { rows: reached, is: 'exact' };
    else if (!hasMore) this.#total = { rows: Math.min(before, reached), is: 'atLeast' };
    else if (before <= reached) this.#total = { rows: reached + BLOCK, is: 'atLeast' };
  }
}

function isTooDeep(error: unknown): error is Refusal {
  return error instanceof Refusal && error.code === 'offset-too-deep';
}

function deepError(block: number, { message }: Refusal): Error {
  return new Error(
    `Row ${counted(block * BLOCK + 1)} is too deep to be found by its number. Jump to a key, or scroll there. The server says: ${message}`,
  );
}
