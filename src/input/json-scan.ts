import { AppError, type BodyFault } from '../errors.ts';

/** The deepest nesting of objects and arrays. */
const DEEPEST = 32;
/** The most values of any kind in one body. Every fault is reported, so their number needs a bound. */
const MOST_VALUES = 1000;

/** The fault of a name that its object has twice. JSON.parse keeps the last of its values. */
export const DUPLICATE = 'the name is a duplicate';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Names to which JavaScript or its BSON library gives a special meaning in any object. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', '_bsontype']);

/**
 * Scans a JSON text (RFC 8259) before it is parsed, for faults that JSON.parse does not report: the place of a syntax
 * error, in the same words on every version of Node; duplicate names; names and texts that cannot be stored as they
 * are. Returns those faults in the order of the text. `numbers` receives the source text of each number by its JSON
 * Pointer, because JSON.parse keeps no more digits than a double has.
 *
 * Throws AppError `malformed-json` with line and column when the text is not JSON, and `invalid-body` when it is
 * nested deeper than 32 levels or has more than `mostValues` (1,000) values. JSON.parse accepts every text for which this function
 * returns.
 */
export function scanJson(
  text: string,
  numbers = new Map<string, string>(),
  mostValues = MOST_VALUES,
): BodyFault[] {
  const faults: BodyFault[] = [];
  /** The names and indexes that lead to the current value. */
  const path: (string | number)[] = [];
  let at = 0;
  let values = 0;

  const fault = (detail: string) => void faults.push({ pointer: pointer(path), detail });

  const refusal = (detail: string): AppError => {
    const errors = [...faults, { pointer: pointer(path), detail }];
    return new AppError('invalid-body', `The request body is ${detail}.`, { errors });
  };

  /** Lines end in LF, CRLF or CR. Columns are counted in characters. Both start at 1. */
  const malformed = (expected: string): AppError => {
    const lines = text.slice(0, at).split(/\r\n|\r|\n/);
    const column = characters(lines.at(-1) ?? '') + 1;
    const found = text.codePointAt(at);
    const came = found === undefined ? 'the end of the body' : JSON.stringify(String.fromCodePoint(found));
    return new AppError(
      'malformed-json',
      `The request body is not JSON: expected ${expected} at line ${lines.length}, column ${column}; got ${came}.`,
    );
  };

  const skipSpace = (): void => {
    while (SPACE.has(text.charCodeAt(at))) at++;
  };

  const takeOne = (char: string): boolean => {
    const is = text[at] === char;
    if (is) at++;
    return is;
  };

  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const is = pattern.test(text);
    if (is) at = pattern.lastIndex;
    return is;
  };

  /** Scans a value and the white space around it. */
  const value = (expected: string): void => {
    skipSpace();
    if (++values > mostValues) throw refusal(`larger than ${mostValues} values`);
    const first = text[at];
    if (first === '{') object();
    else if (first === '[') array();
    else if (first === '"') checkText(string());
    else if (!number() && !take(/true|false|null/y)) throw malformed(expected);
    skipSpace();
  };

  const number = (): boolean => {
    const start = at;
    if (!take(NUMBER)) return false;
    numbers.set(pointer(path), text.slice(start, at));
    return true;
  };

  const object = (): void => {
    const names = new Set<string>();
    enter();
    for (let more = !takeOne('}'); more; more = goesOn('}')) {
      skipSpace();
      if (text[at] !== '"') throw malformed('a name in double quotes');
      const name = string();
      path.push(name);
      checkName(name, names);
      skipSpace();
      if (!takeOne(':')) throw malformed('":"');
      value('a value');
      path.pop();
    }
  };

  const array = (): void => {
    enter();
    let index = 0;
    for (let more = !takeOne(']'); more; more = goesOn(']')) {
      path.push(index++);
      value('a value');
      path.pop();
    }
  };

  const enter = (): void => {
    if (path.length >= DEEPEST) throw refusal(`nested deeper than ${DEEPEST} levels`);
    at++;
    skipSpace();
  };

  /** Called after a member: returns true after a comma, false after the closing bracket. */
  const goesOn = (closing: ']' | '}'): boolean => {
    if (takeOne(',')) return true;
    if (takeOne(closing)) return false;
    throw malformed(`"," or "${closing}"`);
  };

  /** Scans by a loop, because a regular expression over a text of one megabyte could exhaust the stack. */
  const string = (): string => {
    const start = at++;
    for (let isPlain = true; ; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        const raw = text.slice(start, ++at);
        return isPlain ? raw.slice(1, -1) : (JSON.parse(raw) as string);
      }
      // A control character, or NaN at the end of the text.
      if (!(code >= 0x20)) throw malformed('a character of a string, or its closing quote');
      if (code !== BACKSLASH) continue;
      isPlain = false;
      at++;
      if (!take(/["\\/bfnrt]|u[0-9a-fA-F]{4}/y)) throw malformed('the rest of an escape');
      at--;
    }
  };

  const checkName = (name: string, names: Set<string>): void => {
    if (names.has(name)) fault(DUPLICATE);
    else if (name.startsWith('$')) fault('a name must not begin with "$"');
    else if (name.includes('\0')) fault('a name must not contain NUL');
    else if (RESERVED.has(name)) fault('the name is reserved');
    else checkText(name);
    names.add(name);
  };

  /** All text is stored as UTF-8, which cannot encode half a surrogate pair. */
  const checkText = (given: string): void => {
    if (/\p{Surrogate}/u.test(given)) fault('a lone surrogate is not a character');
  };

  value('a JSON value');
  if (at < text.length) throw malformed('the end of the body');
  return faults;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Formats names and indexes as a JSON Pointer (RFC 6901). The pointer of the whole document is the empty text. */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

const SECOND_HALF = /[\udc00-\udfff]/g;

/** Counts the characters (Unicode code points) of a text, as JSON Schema does. */
export function characters(text: string): number {
  return text.length - (text.match(SECOND_HALF)?.length ?? 0);
}
