import type { Results } from '../results.ts';
import { plots } from './plots.ts';
import { tables } from './tables.ts';
import { headlineTable } from './targets.ts';

const BEGIN = '<!-- bench: written by npm run bench -- --publish -->\n';
const END = '<!-- end of bench -->';
/** The folder of the plots, relative to docs/benchmarks.md. */
const FOLDER = '../bench/results';
const NONE =
  'No figures are published yet. They are published when they come from a machine without other load.\n';

/**
 * docs/benchmarks.md with all figures of these results between its marks. null when none were published yet.
 */
export function withFigures(document: string, results: Results | null): string {
  return between(document, results ? figures(results) : NONE);
}

/** README.md with its few figures between its marks. null when none were published yet. */
export function withHeadlines(readme: string, results: Results | null): string {
  return between(readme, results ? headlines(results) : NONE);
}

function between(document: string, text: string): string {
  const begin = document.indexOf(BEGIN);
  const end = document.indexOf(END);
  if (begin < 0 || end < begin) throw new Error('the document has lost the marks of the bench');
  return document.slice(0, begin + BEGIN.length) + text + document.slice(end);
}

function headlines(results: Results): string {
  const { machine, date, commit, again = [] } = results;
  const others = again.map((run) => `, some figures on ${run.date} at commit ${run.commit}`).join('');
  return `${headlineTable(results)}\n\nMeasured on ${date}: ${machine}; commit ${commit}${others}.\n`;
}

function figures(results: Results): string {
  const { machine, commit, command, date, versions, minutes, endedAfter, again = [] } = results;
  const used = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `Measured on ${date}: ${machine}; commit ${commit}; \`${command}\`, ${minutes} minutes${
      endedAfter === undefined ? '' : `, stopped by hand after ${endedAfter}`
    }. With ${used.join(', ')}.`,
    ...again.map(
      (run) =>
        `Measured again on ${run.date} at commit ${run.commit}: ${run.names.map((name) => `\`${name}\``).join(', ')}; \`${run.command}\`, ${run.minutes} minutes.`,
    ),
    'The figures are medians of alternating rounds, and *range* is the lowest and the highest round. Every candidate returned the ' +
      'same bytes. *Limits* measure one component alone. † The server used less than 0.9 of a core. Such a figure shows the ' +
      'speed of the part that the server waited for.',
    tables(results),
    ...plots(results).map(({ file, title }) => `![${title}](${FOLDER}/${file})`),
  ]
    .map((part) => `${part}\n`)
    .join('\n');
}
