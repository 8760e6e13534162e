import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { test } from 'node:test';
import { storeUnavailable } from '../../src/base/errors.ts';
import { importRows, ImportStop, type ImportOptions, type ImportResult } from '../../src/import/import.ts';
import { BrokenSource, type SourceRow, type SourceRows } from '../../src/import/row.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { counted } from '../../src/terminal/text.ts';
import { ImportStore } from '../support/import/import-store.ts';

const NEVER = new AbortController().signal;

function item(id: number | string, more: object = {}): Uint8Array {
  return BSON.serialize({ _id: id, category: 'c', price: 1, ...more });
}

/** `count` good rows whose place is ten times their id, counted as they are taken. */
class Numbers {
  taken = 0;

  async *rows(count: number): SourceRows {
    for (let id = 1; id <= count; id++) {
      this.taken++;
      yield await Promise.resolve([{ at: id * 10, item: item(id) }]);
    }
  }
}

async function* sourceOf(rows: Iterable<SourceRow>, end?: () => void): SourceRows {
  for (const row of rows) yield await Promise.resolve([row]);
  end?.();
}

function options(store: ImportStore, source: SourceRows, more: Partial<ImportOptions> = {}) {
  const reports: string[] = [];
  return {
    reports,
    open: () => Promise.resolve(store),
    source,
    onConflict: 'fail' as const,
    signal: NEVER,
    progress: () => undefined,
    report: (at: number, reason: string) => void reports.push(`${at}: ${reason}`),
    ...more,
  };
}

async function stopped(run: Promise<ImportResult>): Promise<ImportStop> {
  const error: unknown = await run.then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ImportStop, String(error));
  return error;
}

test('A row that the store refuses is reported with its position in any batch', async () => {
  const store = new ImportStore();
  await store.insert([item(3_000), item(29_999)], 'skip');
  const run = options(store, new Numbers().rows(30_000));
  assert.deepEqual(await importRows(run), { read: 30_000, written: 29_998, skipped: 0, failed: 2 });
  assert.deepEqual(run.reports, ['30000: a row with its _id exists', '299990: a row with its _id exists']);
});

test('An import holds at most three batches in memory and runs two inserts at once', async () => {
  const numbers = new Numbers();
  let settled = 0;
  let most = 0;
  const store = new ImportStore(async ({ rows }) => {
    await setImmediate();
    most = Math.max(most, numbers.taken - settled);
    settled += rows.length;
  });
  const { written } = await importRows(options(store, numbers.rows(60_000)));
  assert.equal(written, 60_000);
  assert.equal(store.mostUnderWay, 2);
  assert.ok(most <= 30_001, `${most} rows were in memory`);
});

test('Rows of a source that may never end wait for fewer others than those of a file', async () => {
  for (const [isEndless, expected] of [
    [true, 2_000],
    [false, 10_000],
  ] as const) {
    const store = new ImportStore();
    await importRows(options(store, new Numbers().rows(20_000), { isEndless }));
    assert.deepEqual([...new Set(store.calls.map(({ rows }) => rows.length))], [expected]);
  }
});

test('A batch has a maximum size in bytes', async () => {
  const big = 'x'.repeat(1024 * 1024);
  const rows = Array.from({ length: 20 }, (_, id) => ({ at: id, item: item(id, { big }) }));
  const store = new ImportStore();
  await importRows(options(store, sourceOf(rows)));
  assert.deepEqual(
    store.calls.map(({ rows }) => rows.length),
    [4, 4, 4, 4, 4],
  );
});

test('With replace, rows reach the store in their order', async () => {
  const store = new ImportStore(() => setImmediate());
  const rows = Array.from({ length: 20_000 }, (_, n) => ({ at: n, item: item(n % 7, { n }) }));
  await importRows(options(store, sourceOf(rows), { onConflict: 'replace' }));
  assert.equal(store.mostUnderWay, 1);
  assert.deepEqual(
    store.documents.map(({ n }) => n as number).sort((a, b) => a - b),
    [19_993, 19_994, 19_995, 19_996, 19_997, 19_998, 19_999],
  );
});

test('A store that fails stops the run with its error and the number of durable rows', async () => {
  for (const failing of [1, 2, 3, 5]) {
    const down = storeUnavailable(new Error('gone'));
    const store = new ImportStore(async (_, number) => {
      await setImmediate();
      if (number === failing) throw down;
    });
    const error = await stopped(importRows(options(store, new Numbers().rows(60_000))));
    assert.equal(error.cause, down);
    assert.equal(error.result.written, store.size, 'what is said to be durable is what is there');
    assert.ok(store.calls.length <= failing + 1, 'nothing more is sent after the failure');
    assert.equal(store.underWay, 0);
    assert.match(error.message, new RegExp(`with ${counted(store.size)} rows? durable`));
  }
});

test('When the store fails after the source broke, the error of the store is reported', async () => {
  const down = new Error('down');
  const store = new ImportStore(() => {
    throw down;
  });
  const source = sourceOf([{ at: 1, item: item(1) }], () => {
    throw new BrokenSource('broken');
  });
  assert.equal((await stopped(importRows(options(store, source)))).cause, down);
});

test('Progress is reported while rows are written and while all rows are bad', async () => {
  const seen: number[] = [];
  const progress = ({ read }: ImportResult) => void seen.push(read);
  await importRows(options(new ImportStore(), new Numbers().rows(30_000), { progress }));
  assert.ok(seen.length >= 5);
  seen.length = 0;
  const bad = Array.from({ length: 10_000 }, (_, at) => ({ at, problem: 'bad' }));
  await importRows(options(new ImportStore(), sourceOf(bad), { progress }));
  assert.ok(seen.length >= 2);
});
