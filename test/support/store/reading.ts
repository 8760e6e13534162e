import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import type { Batch } from '../../../src/store/batch.ts';
import { bookmarkOf } from '../../../src/store/bookmark.ts';
import type { Bookmark } from '../../../src/store/bookmark.ts';
import type { From, Collection, Plan, Size } from '../../../src/store/store.ts';
import type { Item } from './items.ts';

export const NEVER = new AbortController().signal;
setMaxListeners(0, NEVER); // a test may wait for many things at the same time
export const PLENTY = 64 * 1024 * 1024;

/** The copied rows of a batch that was released. */
export interface Read {
  readonly rows: readonly Buffer[];
  readonly last: Bookmark | null;
  readonly more: boolean;
  readonly confirm: () => Promise<void>;
}

/**
 * Reads one batch and checks what holds for every batch: its rows are whole, their number is correct, and the
 * bookmark belongs to the last row.
 */
export async function readRows(items: Collection, plan: Plan, from: From, size: Size): Promise<Read> {
  const batch = await items.read(plan, from, size, NEVER);
  const { last, more } = batch;
  const rows = takeRows(batch);
  assert.ok(
    rows.length <= size.rows,
    `${rows.length} rows were returned, at most ${size.rows} were asked for`,
  );
  const end = rows.at(-1);
  assert.deepEqual(last && Buffer.from(last), end ? Buffer.from(bookmarkOf(end, plan)) : null);
  assert.ok(!more || rows.length > 0, 'an empty batch reports more rows, so a reader would never end');
  return { rows, last, more, confirm: () => batch.confirm(NEVER) };
}

/**
 * The rows of a plan, read from bookmark to bookmark in batches of `size` rows, and confirmed at the end. `onRows` gets those
 * of each batch.
 */
export async function walk(
  items: Collection,
  plan: Plan,
  size: number | (() => number),
  onRows: (rows: readonly Buffer[]) => unknown = () => undefined,
): Promise<Buffer[]> {
  const all: Buffer[] = [];
  for (let from: From = {}, more = true; more;) {
    const bound = { rows: typeof size === 'number' ? size : size(), bytes: PLENTY };
    const read = await readRows(items, plan, from, bound);
    all.push(...read.rows);
    await onRows(read.rows);
    ({ more } = read);
    if (read.last) from = { after: read.last };
    if (!more) await read.confirm();
  }
  return all;
}

/** Copies the rows of a batch and releases it. */
export function takeRows(batch: Batch): Buffer[] {
  const bytes = Buffer.from(batch.slot.bytes().subarray(batch.start, batch.start + batch.length));
  batch.release();
  const rows: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    assert.equal(bytes[at], 0x03, 'a row begins with the type of a document');
    const document = bytes.indexOf(0, at) + 1;
    at = document + bytes.readInt32LE(document);
    assert.ok(at <= bytes.length && bytes[at - 1] === 0, 'a row ends in NUL, inside the batch');
    rows.push(bytes.subarray(document, at));
  }
  assert.equal(rows.length, batch.rows);
  return rows;
}

/**
 * Reads from bookmark to bookmark. Checks that exactly these items come, in this order, and that `more` is
 * exact at every step.
 */
export async function assertChain(
  items: Collection,
  plan: Plan,
  from: From,
  size: Size,
  expected: readonly Item[],
): Promise<void> {
  let at = 0;
  let next = from;
  for (;;) {
    const { rows, last, more } = await readRows(items, plan, next, size);
    assertRows(rows, expected.slice(at, at + rows.length));
    at += rows.length;
    assert.equal(more, at < expected.length, `after ${at} of ${expected.length} rows`);
    if (!more) return;
    assert.ok(last);
    next = { after: last };
  }
}

/** Asserts that the rows equal the items byte for byte. */
export function assertRows(rows: readonly Buffer[], expected: readonly Item[]): void {
  assert.equal(rows.length, expected.length);
  rows.forEach((row, n) => {
    if (expected[n] && row.equals(expected[n].bytes)) return;
    assert.fail(`row ${n} is ${nameOf(row)}, expected ${nameOf(expected[n]?.bytes)}`);
  });
}

function nameOf(row: Buffer | undefined): string {
  return row ? row.toString('latin1').replace(/[^ -~]/g, '.') : 'none';
}
