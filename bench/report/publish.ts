import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readResults, type Results, type ScenarioResult } from '../results.ts';
import { withFigures, withHeadlines } from './document.ts';
import { plots } from './plots.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'bench/results');
const FILE = join(FOLDER, 'results.json');
const README = join(ROOT, 'README.md');
const BENCHMARKS = join(ROOT, 'docs/benchmarks.md');

/**
 * Stores the results of a run. Writes the plots, the tables of docs/benchmarks.md and the few figures of README.md from
 * them. `isPart`: the run measured scenarios that were chosen. Those of the last published run on the same machine then stay
 * beside them, and the page says which were measured again and at which commit.
 */
export function publish(run: Results, isPart: boolean): void {
  const results = together(published(), run, isPart);
  writeFileSync(FILE, `${JSON.stringify(results, null, 1)}\n`);
  for (const file of readdirSync(FOLDER)) if (file.endsWith('.svg')) rmSync(join(FOLDER, file));
  for (const { file, svg } of plots(results)) writeFileSync(join(FOLDER, file), svg);
  writeFileSync(BENCHMARKS, withFigures(readFileSync(BENCHMARKS, 'utf8'), results));
  writeFileSync(README, withHeadlines(readFileSync(README, 'utf8'), results));
}

/** The results published last. null when none were published yet. */
export function published(): Results | null {
  return existsSync(FILE) ? readResults(FILE) : null;
}

/** Combines two runs on one machine. Returns only the later one when it has to stand for itself. */
export function together(earlier: Results | null, later: Results, isPart: boolean): Results {
  if (earlier?.machine !== later.machine) return later;
  if (earlier.commit !== later.commit) return isPart ? withPart(earlier, later) : later;
  const endedAfter = later.endedAfter ?? earlier.endedAfter;
  return {
    ...later,
    ...(earlier.again && { again: earlier.again }),
    ...(endedAfter !== undefined && { endedAfter }),
    command: `${earlier.command}; ${later.command}`,
    minutes: Math.round((earlier.minutes + later.minutes) * 10) / 10,
    scenarios: replaced(earlier, later),
  };
}

/** The earlier run with the scenarios that the later one measured at another commit. */
function withPart(earlier: Results, { scenarios, ...later }: Results): Results {
  const { commit, command, date, minutes } = later;
  const names = [...new Set(scenarios.map(({ name, store }) => `${name} on ${store}`))];
  const before = (earlier.again ?? []).map((run) => ({
    ...run,
    names: run.names.filter((name) => !names.includes(name)),
  }));
  const again = [...before.filter((run) => run.names.length > 0), { commit, command, date, minutes, names }];
  return { ...earlier, again, scenarios: replaced(earlier, { ...later, scenarios }) };
}

/** The scenarios of both, in their order. Those of the later run take the place of those before. */
function replaced(earlier: Results, later: Results): readonly ScenarioResult[] {
  const key = ({ name, store, rows }: ScenarioResult) => `${name} ${store} ${rows}`;
  const measured = new Map(later.scenarios.map((scenario) => [key(scenario), scenario]));
  const known = new Set(earlier.scenarios.map(key));
  return [
    ...earlier.scenarios.map((scenario) => measured.get(key(scenario)) ?? scenario),
    ...later.scenarios.filter((scenario) => !known.has(key(scenario))),
  ];
}
