import { mutate, mutantsOf, type Mutant } from './mutate.ts';
import { OPTIONS } from './parts.ts';
import type { Tree } from './tree.ts';
import { randomFrom } from '../../store/random-collection.ts';

/** A fault, and the test that noticed it. null: none did. */
export interface Tried {
  readonly mutant: Mutant;
  readonly by: string | null;
}

/** The least time that a test with a fault gets, and how many times longer than without it. Milliseconds. */
const LEAST_MS = 10_000;
const LONGER = 4;
/** Tests of one fault take this long at most, by what they take without it: most are noticed by the first ones. */
const ALL_MS = 60_000;

/** A sample of the faults of these files, the same for the same seed. */
export function sample(tree: Tree, files: readonly string[], most: number, seed: number): Mutant[] {
  const all = files.flatMap((file) => mutantsOf(file, tree.original(file)));
  const random = randomFrom(seed);
  return all
    .map((mutant) => ({ mutant, order: random() }))
    .sort((a, b) => a.order - b.order)
    .slice(0, most)
    .map(({ mutant }) => mutant);
}

/** A test, and how long it takes without a fault. */
export interface Timed {
  readonly test: string;
  readonly ms: number;
}

/** Runs each test once, and sorts them by their time. Throws an Error when one fails without a fault. */
export async function timed(tree: Tree, tests: readonly string[]): Promise<readonly Timed[]> {
  const all: Timed[] = [];
  for (const test of tests) {
    const started = performance.now();
    const outcome = await tree.test(test, ALL_MS, OPTIONS[test]);
    if (outcome !== 'passed') throw new Error(`${test} ${outcome} without a fault`);
    all.push({ test, ms: performance.now() - started });
  }
  return all.sort((a, b) => a.ms - b.ms);
}

/** Puts a fault in, and runs the tests until one of them notices it by a failure or by not ending. */
export async function tryOut(tree: Tree, tests: readonly Timed[], mutant: Mutant): Promise<Tried> {
  const text = tree.original(mutant.file);
  await tree.write(mutant.file, mutate(text, mutant));
  try {
    let all = 0;
    for (const { test, ms } of tests) {
      all += ms;
      if (all > ALL_MS) break;
      const outcome = await tree.test(test, Math.max(LEAST_MS, ms * LONGER), OPTIONS[test]);
      if (outcome !== 'passed') return { mutant, by: outcome === 'failed' ? test : `${test} (${outcome})` };
    }
    return { mutant, by: null };
  } finally {
    await tree.write(mutant.file, text);
  }
}

/** A line about a fault: place, kind, text before and after, and who noticed it. */
export function lineOf({ mutant, by }: Tried): string {
  const { file, line, kind, original, mutated } = mutant;
  const shown = (text: string) => text.replace(/\s+/g, ' ').slice(0, 70);
  const end = by === null ? 'SURVIVED' : `killed by ${by}`;
  return `${file}:${line} ${kind}: ${shown(original)} -> ${shown(mutated)}: ${end}`;
}
