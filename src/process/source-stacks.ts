import { existsSync, readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { getOrMake } from '../base/get-or-make.ts';

/** A place in a built file, as a stack shows it. */
const PLACE = /(file:\/\/[^\s()]+\.js):(\d+):(\d+)/;

/** How long a map is kept for the next stacks: together they take 20 MB. Milliseconds. */
const KEPT_MS = 1_000;

/**
 * From now on stacks name the files of src that the built ones were made of. A map is read when a stack first needs it:
 * `--enable-source-maps` reads them all, which takes a twentieth of a start. Where that is on, nothing changes.
 */
export function showSources(): void {
  if (process.sourceMapsEnabled) return;
  const maps = new Map<string, SourceMap | null>();
  const sourceOf = (place: string, file: string, line: string, column: string): string => {
    if (maps.size === 0) setTimeout(() => maps.clear(), KEPT_MS).unref();
    const entry = getOrMake(maps, file, () => mapOf(file))?.findEntry(Number(line) - 1, Number(column) - 1);
    if (!entry || !('originalSource' in entry)) return place;
    const { originalSource, originalLine, originalColumn } = entry;
    return `${new URL(originalSource, file).href}:${originalLine + 1}:${originalColumn + 1}`;
  };
  Error.prepareStackTrace = (error, calls) =>
    [
      Error.prototype.toString.call(error),
      ...calls.map(
        (call) => `    at ${(call as { toString(): string }).toString().replace(PLACE, sourceOf)}`,
      ),
    ].join('\n');
}

/** The map beside a built file. Null: there is none. */
function mapOf(file: string): SourceMap | null {
  const map = new URL(`${file}.map`);
  return existsSync(map) ? new SourceMap(JSON.parse(readFileSync(map, 'utf8')) as SourceMapPayload) : null;
}
