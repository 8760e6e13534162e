/**
 * Faults put into the program on purpose, which the tests of their part are to notice. MUTANTS: how many of each part
 * (60). PARTS: only these, separated by commas. SEED repeats a sample. The lines of all go to the output.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { removeDirectory } from '../support/directory.ts';
import { PARTS } from '../support/papers/mutants/parts.ts';
import { lineOf, sample, timed, tryOut, type Tried } from '../support/papers/mutants/run.ts';
import { copyTree, type Tree } from '../support/papers/mutants/tree.ts';
import { SEED } from '../support/seed.ts';

const MOST = Number(process.env.MUTANTS ?? 60);
/** The least share of the faults of a part that tests are to notice, in percent. */
const LEAST_PERCENT = 50;
const parts = Object.entries(PARTS).filter(([name]) => (process.env.PARTS ?? name).split(',').includes(name));

let tree: Tree | undefined;
before(async () => {
  tree = await copyTree();
});
after(() => (tree ? removeDirectory(tree.root) : undefined));

for (const [name, part] of parts)
  test(`tests notice faults in src/${name} (seed ${SEED})`, async (t) => {
    assert.ok(tree);
    const tests = await timed(tree, part.tests);
    const tried: Tried[] = [];
    for (const mutant of sample(tree, part.files, MOST, SEED)) {
      const one = await tryOut(tree, tests, mutant);
      tried.push(one);
      process.stdout.write(`# ${lineOf(one)}\n`);
    }
    const noticed = tried.filter(({ by }) => by !== null).length;
    const share = (100 * noticed) / tried.length;
    t.diagnostic(`${noticed} of ${tried.length} noticed: ${share.toFixed(0)} %`);
    assert.ok(share >= LEAST_PERCENT, `${share} %`);
  });
