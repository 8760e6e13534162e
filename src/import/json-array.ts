import { ArrayElements, givenTwice, type Element } from './json.ts';
import type { Columns } from './item.ts';
import { itemOfObject } from './object.ts';
import { BadRow, BrokenSource, LONGEST_ROW, type SourceRow } from './row.ts';
import { Utf8Pieces } from './utf8.ts';

/**
 * Reads one JSON array of objects, one element at a time. `at` is the number of the element. A syntax error
 * in the JSON ends the run (BrokenSource), because the elements after it cannot be told apart. The elements
 * before it are imported.
 */
export async function* readJson(source: AsyncIterable<Buffer>, columns: Columns): AsyncGenerator<SourceRow> {
  const elements = new ArrayElements();
  const pieces = new Utf8Pieces();
  let at = 0;
  let bytes = 0;
  let damaged = false;
  for await (const chunk of source) {
    bytes += chunk.length;
    const { text, valid } = pieces.push(chunk);
    damaged ||= !valid;
    for (const element of elementsOf(elements, text, at)) {
      yield rowOf(++at, element, damaged, columns);
      damaged = !valid;
      bytes = 0;
    }
    if (bytes > LONGEST_ROW) throw new BrokenSource(`row ${at + 1} is longer than 16 MB`);
  }
  if (!elements.ended) throw new BrokenSource(`the JSON array is cut off after row ${at}`);
}

/** The elements that end in a piece of text. `before` is the number of elements read before this piece. */
function* elementsOf(elements: ArrayElements, text: string, before: number): Generator<Element> {
  let at = before;
  try {
    for (const element of elements.push(text)) {
      at++;
      yield element;
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new BrokenSource(`the JSON is broken in or after row ${at + 1}: ${error.message}`);
  }
}

function rowOf(at: number, { value, twice }: Element, damaged: boolean, columns: Columns): SourceRow {
  if (damaged && JSON.stringify(value).includes('\ufffd')) return { at, problem: 'it is not valid UTF-8' };
  try {
    if (twice !== null) throw givenTwice(twice);
    return { at, item: itemOfObject(value, columns) };
  } catch (error) {
    if (error instanceof BadRow) return { at, problem: error.message };
    throw error;
  }
}
