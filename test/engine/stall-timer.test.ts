import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { StallTimer } from '../../src/engine/stall-timer.ts';

const ROUND_MS = 1000;

/** An answer that counts its checks, and may end at the first one. */
class Answer {
  looks = 0;
  readonly #leave: (() => void) | undefined;

  constructor(stallTimer: StallTimer, leaves: boolean) {
    if (leaves) this.#leave = () => stallTimer.delete(this);
    stallTimer.add(this);
  }

  check(): void {
    this.looks++;
    this.#leave?.();
  }
}

/** A stall timer whose clock the test controls. */
function testTimer(t: TestContext): StallTimer {
  t.mock.timers.enable({ apis: ['setInterval'] });
  return new StallTimer(60_000, () => 0);
}

test('each answer is checked once in each second', (t) => {
  const stallTimer = testTimer(t);
  const answers = Array.from({ length: 1_001 }, () => new Answer(stallTimer, false));
  t.mock.timers.tick(ROUND_MS); // an answer that starts during a round is checked in it or in the next one
  const before = answers.map(({ looks }) => looks);
  for (let round = 1; round <= 3; round++) {
    t.mock.timers.tick(ROUND_MS);
    assert.deepEqual(
      answers.map(({ looks }) => looks),
      before.map((looks) => looks + round),
    );
  }
});

test('answers that end during a round do not prevent checks of the others', (t) => {
  const stallTimer = testTimer(t);
  const leaving = Array.from({ length: 900 }, () => new Answer(stallTimer, true));
  const staying = Array.from({ length: 100 }, () => new Answer(stallTimer, false));
  t.mock.timers.tick(2 * ROUND_MS);
  assert.deepEqual(new Set(leaving.map(({ looks }) => looks)), new Set([1]));
  assert.ok(staying.every(({ looks }) => looks > 0));
});
