import { shellWord } from '../terminal/text.ts';
import { takeWhile } from './chunks.ts';
import { BrokenSource, LongRow, type SourceRows } from './row.ts';

/** A string of JSON, or a sign between its values. */
const TOKEN = /"(?:[^"\\]+|\\.)*"|[{}[\]:,]/gs;

/**
 * The same rows of a file of objects, whose beginning is `head`. Throws BrokenSource when the first object is the only one,
 * and has a member with an array of objects: these are what its owner calls rows.
 */
export async function refuseWrapped(rows: SourceRows, head: string): Promise<SourceRows> {
  const member = memberWithRows(head);
  if (member === undefined) return rows;
  const beginning = await takeWhile(rows, (taken) => taken.flat().length < 2).catch((error: unknown) => {
    if (error instanceof LongRow) return null;
    throw error;
  });
  if (beginning && (beginning.isCut || beginning.taken.flat().length > 1)) return beginning.all;
  const path = /^[a-z_]\w*$/i.test(member) ? member : `[${JSON.stringify(member)}]`;
  const name = JSON.stringify(member);
  throw new BrokenSource(
    `the file is one JSON object, and its member ${name} has the rows; expected an array of rows, or objects one behind the ` +
      `other. For these rows: jq -c ${shellWord(`.${path}[]`)} FILE | sluice import - --format ndjson --into NAME ` +
      '(jq -c . makes one row of the object)',
  );
}

/** The first member of an object at the beginning of a text that has an array of objects. */
function memberWithRows(text: string): string | undefined {
  let depth = 0;
  let before = '';
  let name = '';
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '{' && before === '[' && depth === 2) return JSON.parse(name) as string;
    if (token === ':' && depth === 1) name = before;
    if (token === '{' || token === '[') depth++;
    if ((token === '}' || token === ']') && --depth === 0) return undefined;
    before = token;
  }
  return undefined;
}
