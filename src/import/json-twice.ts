import { MAX_DEPTH } from './fields.ts';
import { BadRow } from './row.ts';

/** The only name that begins with it in a marked text is that of the text of a number. */
const NUMBER = '#';
const NAME_MARK = ':';
const QUOTE = '"';
const COLON = ':';
const NEXT = /"|-?\d[\d.eE+-]*/g;
const BEHIND_BLANKS = /[ \t\r\n]*/y;

/** The same JSON without the names that an object has twice: of each, the last value counts, in the place of the first. */
export function withoutTwice(text: string): string {
  return textOf(parseMarked(text), 1);
}

function textOf(value: unknown, depth: number): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (NUMBER in value) return String(value[NUMBER]);
  if (depth > MAX_DEPTH) throw new BadRow(`the value is nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return `[${value.map((element) => textOf(element, depth + 1)).join(',')}]`;
  const members = Object.entries(value).map(
    ([name, inner]) => `${JSON.stringify(name.slice(NAME_MARK.length))}:${textOf(inner, depth + 1)}`,
  );
  return `{${members.join(',')}}`;
}

/**
 * The value of a text that is JSON, with a mark before each name, and an object with the text of the number in place of each
 * number: `{":10":{"#":"1.50"}}` for `{"10":1.50}`. So JSON.parse changes no number, and moves no name that is an integer.
 */
function parseMarked(text: string): unknown {
  let marked = '';
  let from = 0;
  NEXT.lastIndex = 0;
  for (let found = NEXT.exec(text); found; found = NEXT.exec(text)) {
    const [token] = found;
    if (token === QUOTE) {
      const end = endOfText(text, NEXT.lastIndex);
      BEHIND_BLANKS.lastIndex = end;
      BEHIND_BLANKS.test(text);
      if (text[BEHIND_BLANKS.lastIndex] === COLON) {
        marked += text.slice(from, NEXT.lastIndex) + NAME_MARK;
        from = NEXT.lastIndex;
      }
      NEXT.lastIndex = end;
    } else {
      marked += `${text.slice(from, found.index)}{"${NUMBER}":"${token}"}`;
      from = NEXT.lastIndex;
    }
  }
  return JSON.parse(marked + text.slice(from));
}

/** The index behind the quote that ends a string of JSON, whose content begins at an index. */
function endOfText(text: string, from: number): number {
  for (let end = text.indexOf(QUOTE, from); ; end = text.indexOf(QUOTE, end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return end + 1;
  }
}
