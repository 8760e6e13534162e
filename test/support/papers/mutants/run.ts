import type { Coverage } from './coverage.ts';
import { mutate, mutantsOf, type Mutant } from './mutate.ts';
import { OPTIONS } from './parts.ts';
import type { Tree } from './tree.ts';

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

/** Puts a fault in, and runs the tests of its place until one of them notices it by a failure or by not ending. */
export async function tryOut(tree: Tree, coverage: Coverage, mutant: Mutant): Promise<Tried> {
  const text = tree.original(mutant.file);
  await tree.write(mutant.file, mutate(text, mutant));
  try {
    let all = 0;
    for (const { test, ms } of coverage.testsOf(mutant)) {
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

/** Numbers from 0 to 1, by the generator mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
