/** JSON text as the server writes it, read without JSON.parse, so that numbers keep all their digits. */
const QUOTE = '"';

type Member = readonly [name: string, json: string];

/**
 * The members of an object as the server writes it (JSON without whitespace between its parts, and not empty, since a
 * row has its key). Yields names and the JSON texts of the values, so that numbers keep all their digits. Throws
 * SyntaxError for one that ends too early or too late.
 */
export function* membersOf(row: string): Generator<Member, void, undefined> {
  let at = 1; // after {
  while (row[at] === QUOTE) {
    const nameEnd = stringEnd(row, at);
    const valueEnd = endOfValue(row, nameEnd + 1); // after :
    yield [JSON.parse(row.slice(at, nameEnd)) as string, row.slice(nameEnd + 1, valueEnd)];
    at = valueEnd + 1; // after , or }
  }
  if (at < 2 || at !== row.length || row.at(-1) !== '}')
    throw new SyntaxError('the row ends too early or too late');
}

function endOfValue(text: string, at: number): number {
  const first = text[at];
  if (first === QUOTE) return stringEnd(text, at);
  if (first === '{' || first === '[') return endOfNested(text, at);
  const comma = text.indexOf(',', at);
  return comma === -1 ? text.length - 1 : comma;
}

function endOfNested(text: string, begin: number): number {
  let depth = 0;
  for (let at = begin; at < text.length; at++) {
    const character = text[at];
    if (character === QUOTE) at = stringEnd(text, at) - 1;
    else if (character === '{' || character === '[') depth++;
    else if ((character === '}' || character === ']') && --depth === 0) return at + 1;
  }
  return text.length;
}

/** The index after the closing quote of the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  for (let end = text.indexOf(QUOTE, at + 1); end !== -1; end = text.indexOf(QUOTE, end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return end + 1;
  }
  return text.length;
}
