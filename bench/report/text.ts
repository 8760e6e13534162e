import type { Results } from '../results.ts';
import { tables } from './tables.ts';

/** The report printed at the end of a run. */
export function reportText(results: Results): string {
  const { machine, commit, command, minutes } = results;
  return `\n${machine}; commit ${commit}; ${command}; ${minutes} min\n\n${tables(results)}\n`;
}
