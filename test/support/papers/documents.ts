import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../../..');

/** The documents of the project: README.md, CHANGELOG.md and the files in docs/, as paths from the root. */
export const DOCUMENTS: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

export function documentText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/**
 * The text under a heading of a document, including lower headings. Throws RangeError when there is no such
 * heading.
 */
export function section(path: string, heading: string): string {
  const lines = documentText(path).split('\n');
  const begin = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  if (begin < 0) throw new RangeError(`${path} has no heading "${heading}"`);
  const level = /^#+/.exec(lines[begin] ?? '')?.[0].length ?? 0;
  const rest = lines.slice(begin + 1);
  const end = rest.findIndex((line) => new RegExp(`^#{1,${level}} `).test(line));
  return rest.slice(0, end < 0 ? undefined : end).join('\n');
}

/** The rows of the tables in a text, without heads and rules. Each row is a list of its cells. */
export function tableRows(text: string): string[][] {
  return text
    .split('\n')
    .filter((line, index, lines) => line.startsWith('| ') && !(lines[index + 1] ?? '').startsWith('|---'))
    .map((line) => line.replace(/^\| | \|$/g, '').split(/ \| |\| /));
}

/** The words in code marks in the first column of a section's tables. */
export function firstColumn(path: string, heading: string): string[] {
  return tableRows(section(path, heading)).flatMap(([first = '']) =>
    [...first.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word),
  );
}

/** All files of tests, as paths from test/. */
export const TEST_FILES: readonly string[] = readdirSync(join(ROOT, 'test'), {
  recursive: true,
  encoding: 'utf8',
}).filter((path) => /\.(test|contract)\.ts$/.test(path));

/** The text of a test file by its path without suffix, such as `store/tail`. Empty when there is none. */
export function testText(name: string): string {
  const found = TEST_FILES.find(
    (path) => path.replace(/(\.(slow|long))?\.(test|contract)\.ts$/, '') === name,
  );
  return found === undefined ? '' : readFileSync(join(ROOT, 'test', found), 'utf8');
}
