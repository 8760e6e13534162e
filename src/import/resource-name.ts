import { basename } from 'node:path';
import { nameFault } from '../resources/declarations.ts';
import { UsageError } from '../terminal/arguments.ts';
import { STDIN } from './source.ts';
import { ITEMS } from './target.ts';

/** What a file's name has behind the name of its resource: its format, and its compression. */
const EXTENSIONS = /(?<=.)(?:\.(?:csv|tsv|tab|txt|ndjson|jsonl|json))?(?:\.(?:gz|br|zst))?$/i;

/**
 * The name of the resource that a file becomes: that of the file without folder, format and compression, letter for letter,
 * such as `stock` of `data/stock.csv.gz`. Throws UsageError with another one when no resource may have it.
 */
export function nameOfFile(file: string): string {
  if (file === STDIN) throw new UsageError('--into NAME is required: standard input has no file name');
  const name = basename(file).replace(EXTENSIONS, '');
  const fault = name === ITEMS ? undefined : nameFault(name);
  if (fault === undefined) return name;
  throw new UsageError(
    `the file cannot name its resource: ${fault}. Choose one, such as --into ${nameFor(name, [])}`,
  );
}

/** A name, or one like it that a URL and the routes of the server allow, and that is not taken. */
export function nameFor(wanted: string, taken: readonly string[]): string {
  const isFree = (name: string) => nameFault(name) === undefined && !taken.includes(name);
  if (isFree(wanted)) return wanted;
  const base = `${plain(wanted) || 'c'}-rows`;
  for (let n = 1; ; n++) {
    const name = n === 1 ? base : `${base}-${n}`;
    if (isFree(name)) return name;
  }
}

/** A text with other characters than those of names taken out. */
function plain(text: string): string {
  const letters = text.normalize('NFKD').replace(/\p{M}/gu, '');
  return letters
    .replace(/[^A-Za-z0-9._~-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|-+$/g, '')
    .slice(0, 100);
}
