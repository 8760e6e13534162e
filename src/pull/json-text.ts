/** JSON text as the server writes it, read without JSON.parse, so that numbers keep all their digits. */
const QUOTE = '"';

export type Member = readonly [name: string, json: string];

/**
 * The JSON text of the first value on a path. undefined when there is none. A path that leads to an array gives the array,
 * and of its elements what the rest of the path selects, as in the tables of the server (rows/item.ts).
 */
export function valueAt(members: Iterable<Member>, path: string): string | undefined {
  for (const [name, json] of members) {
    if (name === path) return json;
    if (!path.startsWith(`${name}.`)) continue;
    const rest = path.slice(name.length + 1);
    if (json.startsWith('[')) return picked(json, rest);
    const found = isObject(json) ? valueAt(membersOf(json), rest) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What a path selects of an array or an object. Elements of other kinds are left out. */
function picked(json: string, path: string): string | undefined {
  if (json === '{}') return json;
  if (json.startsWith('[')) {
    const elements = [...elementsOf(json)].map((element) => picked(element, path));
    return `[${elements.filter((element) => element !== undefined).join(',')}]`;
  }
  if (!isObject(json)) return undefined;
  const members = [...membersOf(json)].map(([name, value]) => {
    const below = path.startsWith(`${name}.`) ? picked(value, path.slice(name.length + 1)) : undefined;
    const kept = name === path ? value : below;
    return kept === undefined ? '' : `${JSON.stringify(name)}:${kept}`;
  });
  return `{${members.filter((member) => member !== '').join(',')}}`;
}

/** Whether it is the text of an object that has members. */
function isObject(json: string): boolean {
  return json.startsWith('{"');
}

function* elementsOf(array: string): Generator<string, void, undefined> {
  for (let at = 1; at < array.length - 1;) {
    const end = endOfValue(array, at);
    yield array.slice(at, end);
    at = end + 1; // after , or ]
  }
}

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
