import assert from 'node:assert/strict';
import { once, EventEmitter } from 'node:events';
import type { Count, FilledRow, HowToFill, OwnedCollection } from '../../../src/store/store.ts';
import { NEVER } from './reading.ts';

/** What a fill said, and how it is gone on with. */
export interface StartedFill {
  /** Resolves when the fill asks for the rows behind those that were given until now. Rejects when it ends before. */
  asks(): Promise<void>;
  add(rows: readonly Uint8Array[]): void;
  end(): void;
  fail(error: Error): void;
  readonly done: Promise<void>;
  readonly refused: readonly number[];
  readonly result: { written: number; skipped: number };
  readonly removed: Count | null;
}

/** Begins to fill a collection with rows that the test gives one batch after another. */
export function startFill(
  rows: Pick<OwnedCollection, 'fill'>,
  {
    onConflict = 'fail',
    replaces = false,
  }: { onConflict?: HowToFill['onConflict']; replaces?: boolean } = {},
): StartedFill {
  const events = new EventEmitter();
  const given: (readonly FilledRow[] | Error | null)[] = [];
  const refused: number[] = [];
  const result = { written: 0, skipped: 0 };
  let removed: Count | null = null;
  let at = 0;
  let isAsking = false;
  const next = async () => {
    isAsking = given.length === 0;
    if (isAsking) events.emit('asks');
    while (given.length === 0) await once(events, 'given');
    return given.shift() ?? null;
  };
  async function* batches() {
    for (let batch = await next(); batch !== null; batch = await next()) {
      if (batch instanceof Error) throw batch;
      yield batch;
    }
  }
  const give = (one: readonly FilledRow[] | Error | null) => {
    given.push(one);
    isAsking = false;
    events.emit('given');
  };
  const done = rows.fill(batches(), {
    onConflict,
    refuse: (place) => refused.push(place),
    onWritten: ({ written, skipped }) => {
      result.written += written;
      result.skipped += skipped;
    },
    ...(replaces && { onRemoved: (count) => (removed = count) }),
    signal: NEVER,
  });
  done.catch(() => undefined); // the test looks at it
  return {
    asks: async () => {
      if (!isAsking)
        await Promise.race([once(events, 'asks'), done.then(() => assert.fail('the fill has ended'))]);
    },
    add: (some) => give(some.map((item) => ({ at: ++at, item }))),
    end: () => give(null),
    fail: give,
    done,
    refused,
    result,
    get removed() {
      return removed;
    },
  };
}

/** Fills a collection with rows. */
export async function fillWith(
  rows: Pick<OwnedCollection, 'fill'>,
  some: readonly Uint8Array[],
  options?: Parameters<typeof startFill>[1],
): Promise<StartedFill> {
  const fill = startFill(rows, options);
  fill.add(some);
  fill.end();
  await fill.done;
  return fill;
}
