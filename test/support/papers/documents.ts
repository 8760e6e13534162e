import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../../..');

/** The designs of folders of the source, which stand beside the code: as paths from the root. */
export const DESIGNS: readonly string[] = readdirSync(join(ROOT, 'src'), {
  recursive: true,
  encoding: 'utf8',
})
  .filter((path) => basename(path) === 'DESIGN.md')
  .map((path) => `src/${path}`);

/** The documents of the project: README.md, CHANGELOG.md, the files in docs/ and the designs, as paths from the root. */
export const DOCUMENTS: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  ...DESIGNS,
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

/** The program of a document in this language, which is its first block of that language. */
export function programIn(path: string, language: string): string {
  const [, source] = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(documentText(path)) ?? [];
  if (source === undefined) throw new RangeError(`${path} has no block of ${language}`);
  return source;
}

/**
 * Runs the commands of the blocks of a document that begin with `$ `, whose text the first group of the pattern has, in the part
 * `within`. Compares what is shown below each command with what it prints now, or writes that with UPDATE_DOCUMENTS=1.
 */
export async function checkBlocks(
  path: string,
  blocks: RegExp,
  run: (command: string) => Promise<string>,
  within = documentText(path),
): Promise<void> {
  const text = documentText(path);
  let fresh = text;
  for (const [whole, block = ''] of within.matchAll(blocks)) {
    let output = '';
    for (const line of block.split('\n').filter((each) => each.startsWith('$ '))) {
      const printed = await run(line.slice(2));
      output += `${line}\n${printed}${printed.endsWith('\n') || printed === '' ? '' : '\n'}`;
    }
    fresh = fresh.replace(whole, () => whole.replace(block, () => output));
  }
  if (process.env.UPDATE_DOCUMENTS) writeFileSync(join(ROOT, path), fresh);
  else assert.equal(text, fresh);
}
