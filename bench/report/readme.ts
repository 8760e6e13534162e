import type { Results } from '../results.ts';
import { plots } from './plots.ts';
import { tables } from './tables.ts';

const BEGIN = '<!-- bench: written by npm run bench -- --publish -->\n';
const END = '<!-- end of bench -->';
/** Where plots are, seen from the README. */
const FOLDER = 'bench/results';

/** The README with the figures of these results between its marks; null: none were published yet. */
export function withFigures(readme: string, results: Results | null): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin) throw new Error('the README has lost the marks of the bench');
  return readme.slice(0, begin + BEGIN.length) + figures(results) + readme.slice(end);
}

function figures(results: Results | null): string {
  if (!results)
    return 'No table stands here yet: figures are published once they come from a quiet machine.\n';
  const { machine, commit, command, date, versions, minutes, endedAfter } = results;
  const used = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `Measured on ${date}: ${machine}; commit ${commit}; \`${command}\`, ${minutes} minutes${
      endedAfter === undefined ? '' : `, ended by hand behind ${endedAfter}`
    }. With ${used.join(', ')}.`,
    'Medians of alternating rounds, the lowest and the highest round beside them; every candidate gave the same bytes. *Limits* ' +
      'are parts of the way alone. † The server kept less than 0.9 of a core busy: what is measured there is what it waited for.',
    tables(results),
    ...plots(results).map(({ file, title }) => `![${title}](${FOLDER}/${file})`),
  ]
    .map((part) => `${part}\n`)
    .join('\n');
}
