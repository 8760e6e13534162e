import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Revision } from './lineup.ts';
import { median, perSecond, type ScenarioResult, type Series } from './results.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..');
/** The smallest relevant difference of medians, however quiet the rounds were. */
const LEAST_DIFFERENCE = 0.05;

/** Checks out a commit in a directory of its own and builds it, with its own packages where they differ from ours. */
export async function checkOut(name: string): Promise<Revision & { remove(): Promise<void> }> {
  const directory = join(await mkdtemp(join(tmpdir(), 'sluice-revision-')), 'tree');
  const git = (...args: string[]) => run('git', args, { cwd: ROOT });
  await git('worktree', 'add', '--detach', directory, name);
  const remove = async () => {
    await git('worktree', 'remove', '--force', directory);
    await rm(join(directory, '..'), { recursive: true, force: true });
  };
  try {
    const [own, its] = await Promise.all(
      [ROOT, directory].map((at) => readFile(join(at, 'package-lock.json'))),
    );
    if (own?.equals(its ?? Buffer.of()))
      await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
    else await run('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: directory });
    await run('npm', ['run', 'build'], { cwd: directory });
    return { name, cli: join(directory, 'dist/process/cli.js'), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

export interface Verdict {
  readonly scenario: string;
  readonly candidate: string;
  /**
   * The ratio of the medians of the counts per second. Above 1, this checkout is faster than the revision.
   */
  readonly ratio: number;
  /**
   * The ratio of the least CPU seconds of the server for a count. Above 1, this checkout takes less. It holds on a busy
   * machine, too.
   */
  readonly cpu: number;
  /** `slower` or `faster` when the difference is beyond the noise. */
  readonly is: 'slower' | 'faster' | 'the same';
}

/** Compares each series of this checkout with the revision's series of the same scenario. */
export function compare(scenarios: readonly ScenarioResult[], revision: string): Verdict[] {
  return scenarios.flatMap(({ name, store, series }) =>
    series
      .filter(({ candidate }) => !candidate.endsWith(` at ${revision}`))
      .map((ours): Verdict => {
        const theirs = series.find(({ candidate }) => candidate === `${ours.candidate} at ${revision}`);
        if (!theirs) throw new TypeError(`${name} was not measured at ${revision}`);
        return {
          scenario: `${name} (${store})`,
          candidate: ours.candidate,
          cpu: leastCpu(theirs) / leastCpu(ours),
          ...judge(ours, theirs),
        };
      }),
  );
}

/**
 * A difference is beyond the noise when the medians are 5 % apart and the middle halves of the rounds do not
 * overlap. A single disturbed round then decides nothing.
 */
function judge(ours: Series, theirs: Series): Pick<Verdict, 'ratio' | 'is'> {
  const [own, other] = [ours, theirs].map(({ rounds }) => rounds.map(perSecond).toSorted((a, b) => a - b));
  if (!own || !other) throw new TypeError('a series without rounds');
  const ratio = median(own) / median(other);
  const low = (sorted: readonly number[]) => sorted[Math.floor((sorted.length - 1) / 4)] ?? NaN;
  const high = (sorted: readonly number[]) => sorted[Math.ceil(((sorted.length - 1) * 3) / 4)] ?? NaN;
  if (ratio < 1 - LEAST_DIFFERENCE && high(own) < low(other)) return { ratio, is: 'slower' };
  if (ratio > 1 + LEAST_DIFFERENCE && low(own) > high(other)) return { ratio, is: 'faster' };
  return { ratio, is: 'the same' };
}

function leastCpu({ rounds }: Series): number {
  return Math.min(...rounds.map(({ usage, count }) => usage.server / count));
}
