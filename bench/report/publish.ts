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
 * Stores the results of a run. Writes the plots, the tables of docs/benchmarks.md and the few figures of
 * README.md from them. Results of the last published run are kept beside them when they are of the same
 * commit and machine, and this run did not measure them again.
 */
export function publish(run: Results): void {
  const results = together(published(), run);
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

/** Combines two runs of one commit. Returns only the later one when the commits or machines differ. */
function together(earlier: Results | null, later: Results): Results {
  if (earlier?.commit !== later.commit || earlier.machine !== later.machine) return later;
  const key = ({ name, store, rows }: ScenarioResult) => `${name} ${store} ${rows}`;
  const again = new Set(later.scenarios.map(key));
  const endedAfter = later.endedAfter ?? earlier.endedAfter;
  return {
    ...later,
    ...(endedAfter !== undefined && { endedAfter }),
    command: `${earlier.command}; ${later.command}`,
    minutes: Math.round((earlier.minutes + later.minutes) * 10) / 10,
    scenarios: [...earlier.scenarios.filter((scenario) => !again.has(key(scenario))), ...later.scenarios],
  };
}
