/** Fair turns: one heavy reader keeps others waiting for one of its steps, and not for all of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LookTurns } from '../../../src/store/turns/look-turns.ts';
import { LoopTurns } from '../../../src/store/turns/loop-turns.ts';
import type { Plan } from '../../../src/store/store.ts';
import { Turns, TurnsByKey } from '../../../src/store/turns/work-turns.ts';
import { makeItems, insertItems } from '../../support/store/items.ts';
import { testSqlite } from '../../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, takeRows } from '../../support/store/reading.ts';

const STREAMS = 50;

test('on the embedded store, pages and reads of streams take turns, however many there are', async (t) => {
  const { store } = await testSqlite(t);
  await insertItems(store.items, makeItems(20));
  const plan: Plan = { sort: '_id', direction: 1 };
  const done: string[] = [];
  const read = async (name: string, patient: boolean) => {
    const batch = await store.items.read(plan, {}, { rows: 10, bytes: PLENTY, patient }, NEVER);
    done.push(name);
    assert.equal(takeRows(batch).length, 10);
  };
  await Promise.all([
    ...Array.from({ length: STREAMS }, () => read('stream', true)),
    ...[1, 2, 3].map(() => read('page', false)),
  ]);
  const pages = done.flatMap((name, at) => (name === 'page' ? [at] : []));
  assert.ok(
    pages.every((at, n) => at === 2 * n || at === 2 * n + 1),
    `the pages came as numbers ${pages.join(', ')}`,
  );
  assert.equal(done.length, STREAMS + 3);
});

/** What a look or a step takes, on a clock that only they move. */
const STEP_MS = 3;

test('reads take turns in order of arrival, and yield to the event loop after some milliseconds', async () => {
  let now = 0;
  const turns = new LookTurns(() => now);
  const events: string[] = [];
  const looks = [1, 2, 3, 4].map((n) =>
    turns.take(() => {
      now += STEP_MS; // a turn has 4 ms
      events.push(`look ${n}`);
      return n;
    }, NEVER),
  );
  setImmediate(() => {
    events.push('others');
    setImmediate(() => events.push('others again'));
  });
  assert.deepEqual(await Promise.all(looks), [1, 2, 3, 4]);
  assert.deepEqual(events.slice(0, 4), ['look 1', 'look 2', 'others', 'look 3']);
});

test('a read that fails, or whose client left, passes the turn to the next', async () => {
  const turns = new LookTurns();
  const leaving = new AbortController();
  const failing = turns.take(() => {
    throw new RangeError('no memory');
  }, NEVER);
  const left = turns.take(() => assert.fail('no caller wants it'), leaving.signal);
  const last = turns.take(() => turns.take(() => 'nested', NEVER), NEVER);
  leaving.abort('gone');
  await assert.rejects(failing, RangeError);
  await assert.rejects(left, (reason) => reason === 'gone');
  assert.equal(await last, 'nested');
});

test('readers that go on one after another yield to sockets and timers after 2 ms', async () => {
  let now = 0;
  const turns = new LoopTurns(() => now);
  const events: string[] = [];
  const act = async (name: string) => {
    await turns.next();
    now += STEP_MS;
    events.push(name);
  };
  const acting = ['a', 'b', 'c'].map(act);
  setImmediate(() => events.push('others'));
  await Promise.all(acting);
  assert.deepEqual(events, ['a', 'others', 'b', 'c']);
});

test('readers that had their turn go on when they are called', async () => {
  let now = 0;
  let call: (() => void) | null = null;
  const called = new Promise<void>((resolve) => {
    const later = (run: () => void) => {
      call ??= run;
      resolve();
    };
    const turns = new LoopTurns(() => now, 2, later);
    for (const name of ['a', 'b'])
      void turns.next().then(() => {
        now += STEP_MS;
        events.push(name);
      });
  });
  const events: string[] = [];
  await called;
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(events, ['a'], 'nobody has called');
  (call as (() => void) | null)?.();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(events, ['a', 'b']);
});

test('work runs one at a time in the order of the calls, and a failure reaches its own caller only', async () => {
  const turns = new Turns();
  const log: string[] = [];
  const work = (name: string) => async () => {
    log.push(`${name} begins`);
    await Promise.resolve();
    log.push(`${name} ends`);
    return name;
  };
  const first = turns.take(work('a'));
  const failing = assert.rejects(
    turns.take(() => Promise.reject(new RangeError('b'))),
    RangeError,
  );
  const idle = turns.idle().then(() => {
    assert.ok(log.includes('a ends') && !log.includes('c ends'));
  });
  const last = turns.take(work('c'));
  assert.deepEqual(await Promise.all([first, last]), ['a', 'c']);
  await Promise.all([failing, idle]);
  assert.deepEqual(log, ['a begins', 'a ends', 'c begins', 'c ends']);
});

test('nothing is kept of work that is done while other work waits', async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const turns = new Turns();
  const made: WeakRef<object>[] = [];
  const take = () => {
    let end = (): void => undefined;
    const held = new Promise<void>((resolve) => (end = resolve));
    const done = turns.take(async () => {
      await held;
      const result = { text: 'a piece of a file' };
      made.push(new WeakRef(result));
      return result;
    });
    return { end, done };
  };
  const taken = [take(), take(), take()];
  for (let i = 0; i < 20; i++) {
    const first = taken.shift(); // it runs, and the others wait
    first?.end();
    await first?.done;
    taken.push(take());
  }
  await new Promise((resolve) => setImmediate(resolve));
  gc();
  assert.ok(made.filter((result) => result.deref()).length <= 1);
});

test('work that is stopped before its turn never runs', async () => {
  const turns = new Turns();
  let release = (): void => undefined;
  let isDone = false;
  const running = turns.take(async () => {
    await new Promise<void>((resolve) => (release = resolve));
    isDone = true;
  });
  void turns.take(() => assert.fail('it was dropped'));
  const stopped = turns.stop().then(() => assert.ok(isDone, 'it waits for what runs'));
  release();
  await Promise.all([running, stopped]);
});

test('work of one key waits for work of the same key, and not for that of others', async () => {
  const turns = new TurnsByKey();
  const log: string[] = [];
  let release = (): void => undefined;
  const held = turns.take('a', async () => {
    await new Promise<void>((resolve) => (release = resolve));
    log.push('a1');
  });
  const next = turns.take('a', () => Promise.resolve(void log.push('a2')));
  await turns.take('b', () => Promise.resolve(void log.push('b')));
  assert.deepEqual(log, ['b']);
  release();
  await Promise.all([held, next]);
  assert.deepEqual(log, ['b', 'a1', 'a2']);
});
