/** The rows of a view, in blocks that are read when they come into sight, and dropped to bound memory. */
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

export type Blocks = ReturnType<typeof createBlocks>;

export function createBlocks({ reader, expected, changed, failed, first }: BlocksOptions) {
  const blocks = new Map<number, readonly Row[]>();
  /** The cursor that each block begins after. */
  const cursors = new Map<number, string>();
  const loading = new Map<number, AbortController>();
  let wanted: readonly number[] = [];
  let settled: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;
  let total: Total = {
    rows: expected ?? BLOCK,
    is: expected === undefined || first ? 'atLeast' : 'estimated',
  };

  const isReachable = (block: number): boolean =>
    block === 0 || blocks.has(block) || cursors.has(block) || blocks.has(block - 1);

  /** A block whose predecessor is being read waits for the cursor that this brings. */
  const readWanted = (): void => {
    for (const block of wanted) {
      const isComing = loading.has(block) || (loading.has(block - 1) && !cursors.has(block));
      if (!isComing && !blocks.has(block)) void read(block);
    }
  };

  const read = async (block: number): Promise<void> => {
    loading.get(block)?.abort();
    const leave = new AbortController();
    loading.set(block, leave);
    try {
      const page = await pageOf(block, leave.signal);
      if (isClosed || leave.signal.aborted) return;
      keep(block, page);
      loading.delete(block);
      changed();
      readWanted();
    } catch (error) {
      if (!isAbort(error) && !isClosed) failed(isTooDeep(error) ? deepError(block, error) : error);
    } finally {
      if (loading.get(block) === leave) loading.delete(block);
    }
  };

  const pageOf = async (block: number, signal: AbortSignal): Promise<Page> => {
    const cursor = cursors.get(block);
    if (cursor !== undefined) return reader.read({ cursor }, BLOCK, signal);
    if (first && block === 0) return first;
    try {
      return await reader.read(block === 0 ? {} : { offset: block * BLOCK }, BLOCK, signal);
    } catch (error) {
      // The server finds rows by number only near the beginning. Near the end, they are counted from there.
      const { rows, is } = total;
      const behind = Math.max(0, rows - (block + 1) * BLOCK);
      if (!isTooDeep(error) || is !== 'exact' || behind > block * BLOCK) throw error;
      return reader.readFromEnd(behind, Math.min(BLOCK, rows - block * BLOCK), signal);
    }
  };

  const keep = (block: number, { rows, next, hasMore }: Page): void => {
    blocks.delete(block);
    blocks.set(block, rows);
    if (next !== null && hasMore) cursors.set(block + 1, next);
    for (const old of blocks.keys()) {
      if (blocks.size <= MOST_BLOCKS) break;
      if (!wanted.includes(old)) blocks.delete(old);
    }
    for (const old of cursors.keys()) {
      if (cursors.size <= MOST_CURSORS) break;
      cursors.delete(old);
    }
    const reached = block * BLOCK + rows.length;
    // An empty block behind the end says only that there are fewer rows than thought.
    if (!hasMore && (rows.length > 0 || block === 0)) total = { rows: reached, is: 'exact' };
    else if (!hasMore) total = { rows: Math.min(total.rows, reached), is: 'atLeast' };
    else if (total.rows <= reached) total = { rows: reached + BLOCK, is: 'atLeast' };
  };

  if (first) keep(0, first);

  return {
    total: () => total,

    /** Whether the table begins inside the set, so that its rows have no known numbers. */
    beginsInside: first !== undefined,

    row: (index: number): Row | undefined => blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK],

    rows: (): readonly Row[] => [...blocks.values()].flat(),

    /** Counts the rows of a table that begins with the set. Only `isNew` lets an estimate replace an exact count. */
    async count(signal: AbortSignal, isNew = false): Promise<void> {
      const count = first ? null : await reader.count(signal);
      if (!count || (!isNew && total.is === 'exact' && count.is !== 'exact')) return;
      total = count;
      changed();
    },

    /** Reads the rows from `from` to `to` unless they are there, and gives up the reading of others. */
    need(from: number, to: number): void {
      if (isClosed) return;
      const begin = Math.floor(Math.max(0, from) / BLOCK);
      const end = Math.floor(Math.max(0, Math.min(to, total.rows - 1)) / BLOCK);
      wanted = Array.from({ length: end - begin + 1 }, (_, n) => begin + n);
      for (const [block, leave] of loading) {
        if (wanted.includes(block)) continue;
        leave.abort();
        loading.delete(block);
      }
      clearTimeout(settled);
      if (wanted.some(isReachable)) readWanted();
      else settled = setTimeout(readWanted, SETTLED_MS);
    },

    /** Forgets all rows but not their cursors, and reads those in sight again. */
    refresh(): void {
      if (isClosed) return;
      for (const block of blocks.keys()) if (!wanted.includes(block)) blocks.delete(block);
      for (const block of wanted) void read(block);
    },

    close(): void {
      isClosed = true;
      clearTimeout(settled);
      for (const leave of loading.values()) leave.abort();
    },
  };
}

function isTooDeep(error: unknown): error is Refused {
  return error instanceof Refused && error.code === 'offset-too-deep';
}

function deepError(block: number, { message }: Refused): Error {
  return new Error(
    `Row ${counted(block * BLOCK + 1)} is too deep to be found by its number. Jump to a key, or scroll there. The server says: ${message}`,
  );
}
