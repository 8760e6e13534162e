import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readResults, type Results } from '../results.ts';
import { plots } from './plots.ts';
import { withFigures } from './readme.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'bench/results');
const FILE = join(FOLDER, 'results.json');
const README = join(ROOT, 'README.md');

/** Keeps a run's results, and writes from them the plots and the README's tables. */
export function publish(results: Results): void {
  writeFileSync(FILE, `${JSON.stringify(results, null, 1)}\n`);
  for (const file of readdirSync(FOLDER)) if (file.endsWith('.svg')) rmSync(join(FOLDER, file));
  for (const { file, svg } of plots(results)) writeFileSync(join(FOLDER, file), svg);
  writeFileSync(README, withFigures(readFileSync(README, 'utf8'), results));
}

/** The results that were published last; null before there are any. */
export function published(): Results | null {
  return existsSync(FILE) ? readResults(FILE) : null;
}
