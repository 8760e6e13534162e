import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { noting, placeOf, type Place } from './hits.ts';
import type { Mutant } from './mutate.ts';
import { OPTIONS } from './parts.ts';
import type { Tree } from './tree.ts';

/** A test file: how long it takes, and the numbers of the statements that it runs. */
export interface Covering {
  readonly test: string;
  readonly ms: number;
  readonly hits: ReadonlySet<number>;
}

const PRELOAD = pathToFileURL(join(import.meta.dirname, 'hits.mjs')).href;
const LIMIT_MS = 60_000;

/** Which statements of these files the tests run. */
export class Coverage {
  readonly #places: ReadonlyMap<string, readonly Place[]>;
  readonly tests: readonly Covering[];

  private constructor(places: ReadonlyMap<string, readonly Place[]>, tests: readonly Covering[]) {
    this.#places = places;
    this.tests = tests;
  }

  /** Runs each test once. Throws an Error when one fails without a fault. */
  static async measure(tree: Tree, files: readonly string[], names: readonly string[]): Promise<Coverage> {
    const places = new Map<string, readonly Place[]>();
    let first = 0;
    for (const file of files) {
      const noted = noting(file, tree.original(file), first);
      await tree.write(file, noted.noted);
      places.set(file, noted.places);
      first += noted.places.length;
    }
    const tests: Covering[] = [];
    for (const test of names) tests.push(await run(tree, test));
    for (const file of files) await tree.write(file, tree.original(file));
    tests.sort((a, b) => a.ms - b.ms);
    return new Coverage(places, tests);
  }

  /** The tests that run the place of a fault, fastest first. */
  testsOf({ file, start }: Mutant): readonly Covering[] {
    const places = this.#places.get(file) ?? [];
    // What is outside of functions runs in each test that loads the file: those that run a statement of it.
    const numbers = placeOf(places, file, start);
    const wanted = numbers === undefined ? places.map(({ number }) => number) : [numbers];
    return this.tests.filter(({ hits }) => wanted.some((number) => hits.has(number)));
  }
}

async function run(tree: Tree, test: string): Promise<Covering> {
  const directory = await tree.directory(`hits/${test}`);
  const started = performance.now();
  const outcome = await tree.test(test, LIMIT_MS, OPTIONS[test], {
    HITS: directory,
    NODE_OPTIONS: `--import ${PRELOAD}`,
  });
  const ms = performance.now() - started;
  if (outcome !== 'passed') throw new Error(`${test} ${outcome} without a fault`);
  const hits = readdirSync(directory).flatMap(
    (name) => JSON.parse(readFileSync(join(directory, name), 'utf8')) as number[],
  );
  return { test, ms, hits: new Set(hits) };
}
