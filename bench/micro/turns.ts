import assert from 'node:assert/strict';
import { cpus } from 'node:os';
import { median } from '../results.ts';

const ROUNDS = 9;

/** Does the work once and returns a number derived from its result. The number is asserted in each round. */
export type Work = (turn: number) => number;

/** Prints the machine of the figures below. */
export function printMachine(): void {
  const date = new Date().toISOString().slice(0, 10);
  process.stdout.write(`${cpus()[0]?.model.trim() ?? 'unknown CPU'}, Node ${process.version}, ${date}\n`);
}

/**
 * Prints the cost of each work: the median of alternating rounds, in CPU time of this process, which other
 * processes disturb least. `expected` is the result of every turn of a work.
 */
export function takeTurns(
  works: Readonly<Record<string, { readonly work: Work; readonly expected: number }>>,
  turns: number,
): void {
  const costs = new Map<string, number[]>(Object.keys(works).map((name) => [name, []]));
  for (let round = -1; round < ROUNDS; round++) {
    for (const [name, { work, expected }] of Object.entries(works)) {
      const started = process.cpuUsage();
      let sum = 0;
      for (let turn = 0; turn < turns; turn++) sum += work(turn);
      const { user, system } = process.cpuUsage(started);
      assert.equal(sum, expected * turns, name);
      if (round >= 0) costs.get(name)?.push((user + system) / turns); // the first round warms up
    }
  }
  for (const [name, all] of costs)
    process.stdout.write(`${median(all).toFixed(2).padStart(7)} µs CPU  ${name}\n`);
}
